# gen/hd_version.h: `git describe` is asked at every build, the file is rewritten only
# when the answer changes. Run with -P it is that question, included it is the target.
if(CMAKE_SCRIPT_MODE_FILE)
  set(HD_GIT "unknown")
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12
    OUTPUT_VARIABLE answer RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(status EQUAL 0)
    set(HD_GIT "${answer}")
  endif()
  configure_file(${SOURCE}/cmake/hd_version.h.in ${INTO} @ONLY)
  return()
endif()

set(HD_VERSION_COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR}
  -DINTO=${CMAKE_BINARY_DIR}/gen/hd_version.h -P ${CMAKE_CURRENT_LIST_FILE})
execute_process(COMMAND ${HD_VERSION_COMMAND})
add_custom_target(hd_version ALL COMMAND ${HD_VERSION_COMMAND} BYPRODUCTS ${CMAKE_BINARY_DIR}/gen/hd_version.h
  COMMENT "asking git for the version")
