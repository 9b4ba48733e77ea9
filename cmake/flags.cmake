get_filename_component(HD_ROOT ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
# Compiler and linker flags of every target. The warnings are the same for gcc and clang but for two;
# -ffp-contract=off because results are promised bit for bit.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wswitch-enum -Wvla -Walloca -Werror
  -ffp-contract=off -fno-math-errno -fstack-protector-strong)
# Two things that gcc takes in gnu17: rows of a designated array that end early, and no argument for `...`.
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wno-missing-field-initializers -Wno-gnu-zero-variadic-macro-arguments)
endif()
# -iquote, not -I: room sys must not stand in for the system's own <sys/socket.h>.
add_compile_options("SHELL:-iquote ${HD_ROOT}/src" "SHELL:-iquote ${HD_ROOT}"
  "SHELL:-iquote ${CMAKE_BINARY_DIR}/gen")
add_link_options(-Wl,-z,relro,-z,now)

if(HD_FAILPOINTS)
  add_compile_definitions(HD_FAILPOINTS)
endif()
if(EXISTS ${HD_ROOT}/src/base/banned.h)
  add_compile_options("SHELL:-include ${HD_ROOT}/src/base/banned.h")
endif()

if(HD_SANITIZE STREQUAL "")
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-clash-protection)
  endif()
elseif(HD_SANITIZE STREQUAL "asan")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  if(HD_FUZZ)           # unit tests and fuzz targets have the same objects: these alone link libFuzzer's main
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
      message(FATAL_ERROR "HD_FUZZ needs clang (libFuzzer): configure with --preset asan or "
        "-DCMAKE_C_COMPILER=clang")
    endif()
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
elseif(HD_SANITIZE STREQUAL "tsan")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(HD_SANITIZE STREQUAL "cover")
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
else()
  message(FATAL_ERROR "HD_SANITIZE is '${HD_SANITIZE}'; use asan, tsan, cover or leave it empty")
endif()
