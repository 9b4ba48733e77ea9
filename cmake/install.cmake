# `cmake --install build/release --prefix DIR`: the program, and what it writes from its own tables: a manual
# page for each verb, completions for the shells that read them from their usual folders.
include(GNUInstallDirs)
install(TARGETS heddle)
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
set(written ${CMAKE_BINARY_DIR}/written)
install(CODE "
  file(REMOVE_RECURSE \"${written}\")
  execute_process(COMMAND bash \"${CMAKE_SOURCE_DIR}/cmake/write_pages.sh\" \"$<TARGET_FILE:heddle>\"
    \"${written}\" COMMAND_ERROR_IS_FATAL ANY)
")
install(DIRECTORY ${written}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${written}/heddle.bash
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME heddle)
install(FILES ${written}/heddle.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _heddle)
install(FILES ${written}/heddle.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
