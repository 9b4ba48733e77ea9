# The kernels of the processor (src/device/cpu): one source compiled once per path, with flags of that path;
# the rest of the tree must run on any x86-64. That takes more than two minutes of compiler, so the presets
# share the objects: a project of its own (cmake/kernels) compiles them as `release` does, -O3 whatever the
# preset, in the folder HD_KERNELS. Where that is empty (a plain `cmake -B`) they are compiled in place.
#
# A sanitizer watches one path, compiled in place with -O1. AddressSanitizer: the portable one; the other two
# compute the same on the same memory. ThreadSanitizer: the one of AVX2, and hd_cpu_path() leaves out the
# wider one.
set(HD_KERNELS "" CACHE PATH "folder of the kernels that builds share; empty: this build compiles its own")
set(HD_KERNELS_CC "${CMAKE_C_COMPILER}" CACHE STRING "compiler of the kernels that builds share")
set(HD_AVX2 -mavx2 -mfma)
set(HD_AVX512 ${HD_AVX2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
set(HD_BF16 ${HD_AVX512} -mavx512bf16)
set(HD_AMX ${HD_BF16} -mamx-tile -mamx-bf16)
set(HD_PORTABLE "")
set(HD_WATCHED none)
set(HD_KERNEL_FILE "/cpu/((kernels|edges)_(portable|avx2|avx512|bf16|amx))\\.c$")
if(HD_SANITIZE STREQUAL "asan")
  set(HD_WATCHED portable)
  set(HD_PORTABLE -O1 -fno-sanitize=undefined)
  if(HD_FUZZ)             # no parser: libFuzzer learns nothing from its branches
    list(APPEND HD_PORTABLE -fno-sanitize=fuzzer-no-link)
  endif()
  list(APPEND HD_AVX2 -fno-sanitize=all)
  list(APPEND HD_AVX512 -fno-sanitize=all)
  list(APPEND HD_BF16 -fno-sanitize=all)
  list(APPEND HD_AMX -fno-sanitize=all)
elseif(HD_SANITIZE STREQUAL "tsan")
  set(HD_WATCHED avx2)
  list(APPEND HD_AVX2 -O1)
  list(APPEND HD_AVX512 -fno-sanitize=all)
  list(APPEND HD_BF16 -fno-sanitize=all)
  list(APPEND HD_AMX -fno-sanitize=all)
endif()

function(hd_cpu_flags)
  foreach(file ${ARGN})
    if(file MATCHES "_avx512\\.[ch]")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${HD_AVX512}")
    elseif(file MATCHES "kernels_bf16\\.c")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${HD_BF16}")
    elseif(file MATCHES "kernels_amx\\.c")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${HD_AMX}")
    elseif(file MATCHES "_avx2\\.[ch]")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${HD_AVX2}")
    elseif(file MATCHES "(kernels|edges)_portable\\.c")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${HD_PORTABLE}")
    endif()
  endforeach()
endfunction()

# Puts the shared objects in the place of their sources, in the list of sources called `out`.
function(hd_kernels out)
  if(NOT HD_KERNELS OR HD_SANITIZE STREQUAL "cover" OR NOT "${${out}}" MATCHES "/cpu/kernels_")
    return()
  endif()
  get_filename_component(compiler ${HD_KERNELS_CC} NAME)
  set(folder ${HD_KERNELS}/${compiler})
  set(lock flock ${HD_KERNELS}/lock)         # two presets may be built at the same time
  set(kept "")
  set(objects "")
  foreach(file ${${out}})
    if(NOT file MATCHES "${HD_KERNEL_FILE}" OR CMAKE_MATCH_3 STREQUAL HD_WATCHED)
      list(APPEND kept ${file})
      continue()
    endif()
    list(APPEND objects ${folder}/CMakeFiles/hd_kernels.dir/${CMAKE_MATCH_1}.c.o)
  endforeach()
  file(MAKE_DIRECTORY ${folder})
  execute_process(COMMAND ${lock} ${CMAKE_COMMAND} -S ${CMAKE_SOURCE_DIR}/cmake/kernels -B ${folder} -G Ninja
    -DCMAKE_C_COMPILER=${HD_KERNELS_CC} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  add_custom_target(hd_kernels COMMAND ${lock} ${CMAKE_COMMAND} --build ${folder} -- --quiet -j 2
    BYPRODUCTS ${objects} COMMENT "kernels that all presets share" VERBATIM)
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set(${out} ${kept} ${objects} PARENT_SCOPE)
endfunction()
