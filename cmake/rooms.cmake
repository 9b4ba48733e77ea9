# hd_room(name links...): library hd_<name> from src/<name>/**/*.c, an executable for
# every x_test.c beside its x.c, and a check that every header compiles by itself.
set_property(GLOBAL PROPERTY hd_landed "")

function(hd_room room)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${room}/*.c)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${room}/*.h)
  set(tests ${files})
  list(FILTER files EXCLUDE REGEX "(_test|/main)\\.c$")
  list(FILTER tests INCLUDE REGEX "_test\\.c$")
  if((HD_ONLY AND NOT room IN_LIST HD_ONLY) OR NOT files)
    return()
  endif()
  hd_pick_dnnl(files)
  hd_pick_lp(files)
  hd_pick_splitter(files)
  hd_pick_web(files)
  hd_pick_uring(files)
  hd_kernels(files)
  hd_cpu_flags(${files})
  hd_uncounted(${files})
  set(made "")
  if(room STREQUAL "graph")
    hd_onnx_messages(made)
  elseif(room STREQUAL "timeline")
    hd_embedded_page(viewer timeline/page made)
  elseif(room STREQUAL "run")
    hd_embedded_page(report run/page made)
  elseif(room STREQUAL "daemon")
    hd_page_files(made)
  endif()
  add_library(hd_${room} STATIC ${files} ${made})
  add_dependencies(hd_${room} hd_version)
  if(room STREQUAL "device" AND TARGET hd_kernels)
    add_dependencies(hd_device hd_kernels)
  endif()
  foreach(link ${ARGN})
    if(link MATCHES "^hd_" AND NOT TARGET ${link})
      continue()
    endif()
    hd_library(${link} ${room} link)
    target_link_libraries(hd_${room} PUBLIC ${link})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY hd_landed ${room})
  if(HD_TESTS)
    add_custom_target(tests_${room})
    if(NOT HD_SANITIZE)
      hd_headers_alone(${room} ${headers})
      add_dependencies(tests_${room} alone_${room})
      if(made)
        add_dependencies(alone_${room} hd_${room})
      endif()
    endif()
    foreach(test ${tests})
      get_filename_component(stem ${test} NAME_WE)
      hd_unit_test(${room} ${room}_${stem} ${test})
    endforeach()
  endif()
endfunction()

# Counters of branches for libFuzzer make code three times as slow, and all unit tests of preset asan run it.
# They are in what reads an input and in what judges it; not in what computes, plans and plays with it, which
# fuzz targets run all the same.
set(HD_UNCOUNTED
  "autoscale/|balance/|cmd/|device/|driver/|engine/|explore/|gnn/|worker/"
  "clustersim/gen/|clustersim/schedsim/(advise|gavel|ours|profile|queue|report|sim|slurm|story|waits)\\.c"
  "pipeline/(place|schedule|shadow|sim)/|planner/(partition|ptdp|search|ways)/"
  "protocol/(coordinator|exchange|held|member|passes|ranks|seal|simulation|transfers|view|zones)"
  "scheduler/(dispatch|estimate|lp|rounds|window)/|spot/(guard|lead|ledger|me|re|saving|value)")
list(JOIN HD_UNCOUNTED "|" HD_UNCOUNTED)
function(hd_uncounted)
  foreach(file ${ARGN})
    if(HD_FUZZ AND file MATCHES "/src/(${HD_UNCOUNTED})")
      set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=fuzzer-no-link)
    endif()
  endforeach()
endfunction()

# Each header included twice and first: it brings what it needs and has a guard. Tables
# that are included with X defined say "Not a header of its own" and are left out, like
# the pieces x.inc.h that are compiled once per instruction set.
function(hd_headers_alone room)
  set(sources "")
  foreach(header ${ARGN})
    file(STRINGS ${header} table REGEX "Not a header of its own")
    if(table OR header MATCHES "\\.inc\\.h$")
      continue()
    endif()
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/src ${header})
    string(REGEX REPLACE "[/.]" "_" stem ${name})
    string(REGEX REPLACE "(_avx2|_avx512)_h$" "_h\\1" stem ${stem})
    set(source ${CMAKE_BINARY_DIR}/gen/alone/${stem}.c)
    file(CONFIGURE OUTPUT ${source} CONTENT
      "#include \"${name}\"\n#include \"${name}\"\nextern int hd_alone;\n")
    list(APPEND sources ${source})
  endforeach()
  if(NOT sources)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/gen/alone/${room}.c CONTENT "extern int hd_alone;\n")
    set(sources ${CMAKE_BINARY_DIR}/gen/alone/${room}.c)
  endif()
  hd_cpu_flags(${sources})
  add_library(alone_${room} OBJECT ${sources})
  add_dependencies(alone_${room} hd_version)
endfunction()

function(hd_unit_test room name source)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE hd_${room} cmocka m)
  hd_quick_test(${name})
  add_dependencies(tests_${room} ${name})
  add_test(NAME ${name} COMMAND ${name})
  hd_test_properties(${name} 900 ${room})
endfunction()

# The file of a test is judged by no test: it is compiled quickly, with -O0, what it judges as the preset
# says. libFuzzer learns nothing from its branches. These compute more than they are compiled:
set(HD_COMPUTING device_conform_test device_gradient_test device_gemm_test pipeline_sim_ticks_test
  planner_partition_reference_test)
function(hd_quick_test name)
  if(HD_FUZZ)
    target_compile_options(${name} PRIVATE -fno-sanitize=fuzzer-no-link)
  endif()
  if(NOT HD_FUZZ AND NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    # -O1, as the preset says
  elseif(name IN_LIST HD_COMPUTING)
    target_compile_options(${name} PRIVATE -O1)
  else()
    target_compile_options(${name} PRIVATE -O0)
  endif()
  hd_quick_link(${name})
endfunction()

# Some 400 executables of tests: lld links one in a third of the time, and in three quarters of that where it
# neither makes it small (-O0) nor hashes it for an id nor shares the work out to threads: other links run
# beside. The program itself is linked by the compiler's own linker.
function(hd_quick_link name)
  find_program(HD_LLD ld.lld DOC "linker of the tests, where there is one")
  mark_as_advanced(HD_LLD)
  if(HD_LLD)
    target_link_options(${name} PRIVATE -fuse-ld=lld -Wl,-O0,--threads=1,--build-id=none)
  endif()
endfunction()

# `seconds`: for what never ends, not for what is slow: several times what a sanitizer's build takes on a busy
# machine. Exit status 77 is a skip; the environment names what a test may need.
function(hd_test_properties name seconds label)
  set(places "SOURCE_DIR=${CMAKE_SOURCE_DIR}" "BUILD_DIR=${CMAKE_BINARY_DIR}"
    "HEDDLE_BIN=${CMAKE_BINARY_DIR}/heddle")
  set_tests_properties(${name} PROPERTIES TIMEOUT ${seconds} LABELS ${label} SKIP_RETURN_CODE 77
    ENVIRONMENT "${places}")
endfunction()
