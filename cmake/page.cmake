# gen/hd_viewer_page.h, gen/hd_report_page.h: the source of the timeline's page (src/timeline/page) and of
# that of several runs (src/run/page), put into the program as texts.
function(hd_embedded_page name folder out)
  set(folder ${CMAKE_SOURCE_DIR}/src/${folder})
  set(made ${CMAKE_BINARY_DIR}/gen/hd_${name}_page.h)
  file(GLOB parts CONFIGURE_DEPENDS ${folder}/*.js ${folder}/*.css ${folder}/*.html ${folder}/order)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/gen)
  add_custom_command(OUTPUT ${made}
    COMMAND bash ${CMAKE_SOURCE_DIR}/cmake/embed_page.sh ${folder} ${made} ${name}
    DEPENDS ${parts} ${CMAKE_SOURCE_DIR}/cmake/embed_page.sh COMMENT "the page ${name}" VERBATIM)
  set(${out} ${made} PARENT_SCOPE)
endfunction()

# gen/hd_page_files.h: the files of the scheduler's page (src/daemon/page), put into the program as texts.
function(hd_page_files out)
  set(folder ${CMAKE_SOURCE_DIR}/src/daemon/page)
  set(made ${CMAKE_BINARY_DIR}/gen/hd_page_files.h)
  file(GLOB parts CONFIGURE_DEPENDS ${folder}/*)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/gen)
  add_custom_command(OUTPUT ${made}
    COMMAND bash ${CMAKE_SOURCE_DIR}/cmake/embed_files.sh ${folder} ${made}
    DEPENDS ${parts} ${CMAKE_SOURCE_DIR}/cmake/embed_files.sh COMMENT "the scheduler's page" VERBATIM)
  set(${out} ${made} PARENT_SCOPE)
endfunction()
