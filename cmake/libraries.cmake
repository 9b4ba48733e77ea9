# Third-party libraries, looked for only when a room that links them has sources.
# Row: link name, header, Debian package, required or optional.
set(HD_LIBRARIES
  "jansson|jansson.h|libjansson-dev|required"
  "fyaml|libfyaml.h|libfyaml-dev|required"
  "z|zlib.h|zlib1g-dev|required"
  "zstd|zstd.h|libzstd-dev|required"
  "xxhash|xxhash.h|libxxhash-dev|required"
  "ssl|openssl/ssl.h|libssl-dev|required"
  "crypto|openssl/evp.h|libssl-dev|required"
  "protobuf-c|protobuf-c/protobuf-c.h|libprotobuf-c-dev|required"
  "sqlite3|sqlite3.h|libsqlite3-dev|required"
  "microhttpd|microhttpd.h|libmicrohttpd-dev|required"
  "dnnl|dnnl.h|libdnnl-dev|optional"
  "Clp|coin/Clp_C_Interface.h|coinor-libclp-dev|optional"
  "metis|metis.h|libmetis-dev|optional"
  "curl|curl/curl.h|libcurl4-openssl-dev|optional"
  "uring|liburing.h|liburing-dev|optional"
  "pcre2-8|pcre2.h|libpcre2-dev|required"
  "utf8proc|utf8proc.h|libutf8proc-dev|required"
  "jpeg|jpeglib.h|libjpeg62-turbo-dev|required"
  "png|png.h|libpng-dev|required"
)
set_property(GLOBAL PROPERTY hd_libraries "")

# Sets `out` to what to link for `name`: a path, or nothing for an optional library
# that is absent; a name that has no row passes unchanged (m, hd_base).
function(hd_library name room out)
  set(${out} ${name} PARENT_SCOPE)
  foreach(row ${HD_LIBRARIES})
    string(REPLACE "|" ";" row "${row}")
    list(GET row 0 link)
    if(NOT link STREQUAL name)
      continue()
    endif()
    list(GET row 1 header)
    list(GET row 2 package)
    list(GET row 3 need)
    string(TOUPPER ${name} upper)
    if("${HD_${upper}}" STREQUAL "OFF")
      set_property(GLOBAL APPEND PROPERTY hd_libraries "${name}=off")
      set(${out} "" PARENT_SCOPE)
      return()
    endif()
    find_library(HD_LIB_${upper} ${name})
    find_path(HD_INC_${upper} ${header})
    mark_as_advanced(HD_LIB_${upper} HD_INC_${upper})
    if(HD_LIB_${upper} AND HD_INC_${upper})
      set_property(GLOBAL APPEND PROPERTY hd_libraries "${name}=yes")
      set(${out} ${HD_LIB_${upper}} PARENT_SCOPE)
    elseif(need STREQUAL "required" OR "${HD_${upper}}" STREQUAL "ON")
      message(FATAL_ERROR "room ${room} needs ${name} (${header}): apt-get install ${package}")
    else()
      set_property(GLOBAL APPEND PROPERTY hd_libraries "${name}=absent")
      set(${out} "" PARENT_SCOPE)
    endif()
    return()
  endforeach()
endfunction()

# oneDNN 2 and 3 share no source: device/cpu holds dnnl2.c, dnnl3.c and, for builds
# without the library, dnnl0.c. Keeps the one that fits in the list called `out` (not `files`:
# a parameter of the name of what it names would hide it).
function(hd_pick_dnnl out)
  set(kept ${${out}})
  if(NOT kept MATCHES "/dnnl[0-9]\\.c")
    return()
  endif()
  set(major 0)
  hd_library(dnnl device dnnl)
  if(dnnl)
    find_file(HD_DNNL_VERSION_H NAMES dnnl_version.h oneapi/dnnl/dnnl_version.h PATHS ${HD_INC_DNNL})
    find_file(HD_DNNL_VERSION_H2 oneapi/dnnl/dnnl_version.h PATHS ${HD_INC_DNNL})
    mark_as_advanced(HD_DNNL_VERSION_H HD_DNNL_VERSION_H2)
    foreach(header ${HD_DNNL_VERSION_H} ${HD_DNNL_VERSION_H2})
      file(STRINGS ${header} line REGEX "define DNNL_VERSION_MAJOR")
      if(line MATCHES "([0-9]+)")
        set(major ${CMAKE_MATCH_1})
      endif()
    endforeach()
  endif()
  list(FILTER kept EXCLUDE REGEX "/dnnl[0-9]\\.c$")
  set(pick ${CMAKE_SOURCE_DIR}/src/device/cpu/dnnl${major}.c)
  if(NOT EXISTS ${pick})
    message(FATAL_ERROR
      "no src/device/cpu/dnnl${major}.c for the oneDNN found (major version ${major}, 0: none)")
  endif()
  set(${out} ${kept} ${pick} PARENT_SCOPE)
endfunction()

# scheduler/lp holds lp_clp.c and, for builds without the library, lp_none.c: keeps the one that fits.
function(hd_pick_lp out)
  set(kept ${${out}})
  if(NOT kept MATCHES "/lp/lp_(clp|none)\\.c")
    return()
  endif()
  hd_library(Clp scheduler clp)
  if(clp)
    list(FILTER kept EXCLUDE REGEX "/lp/lp_none\\.c$")
  else()
    list(FILTER kept EXCLUDE REGEX "/lp/lp_clp\\.c$")
  endif()
  set(${out} ${kept} PARENT_SCOPE)
endfunction()

# gnn holds split_metis.c and, for builds without the library, split_none.c: keeps the one that fits.
function(hd_pick_splitter out)
  set(kept ${${out}})
  if(NOT kept MATCHES "/gnn/split_(metis|none)\\.c")
    return()
  endif()
  hd_library(metis gnn metis)
  if(metis)
    list(FILTER kept EXCLUDE REGEX "/gnn/split_none\\.c$")
  else()
    list(FILTER kept EXCLUDE REGEX "/gnn/split_metis\\.c$")
  endif()
  set(${out} ${kept} PARENT_SCOPE)
endfunction()

# sys holds web_any_curl.c, web_curl.c, web_get_curl.c and, for builds without the library, web_none.c,
# web_get_none.c.
function(hd_pick_web out)
  set(kept ${${out}})
  if(NOT kept MATCHES "/sys/web_(any_|get_)?(curl|none)\\.c")
    return()
  endif()
  hd_library(curl sys curl)
  if(curl)
    list(FILTER kept EXCLUDE REGEX "/sys/web_(get_)?none\\.c$")
  else()
    list(FILTER kept EXCLUDE REGEX "/sys/web_(any_|get_)?curl\\.c$")
  endif()
  set(${out} ${kept} PARENT_SCOPE)
endfunction()

# sys holds uring_lib.c and, for builds without the library, uring_none.c: keeps the one that fits.
function(hd_pick_uring out)
  set(kept ${${out}})
  if(NOT kept MATCHES "/sys/uring_(lib|none)\\.c")
    return()
  endif()
  hd_library(uring sys uring)
  if(uring)
    list(FILTER kept EXCLUDE REGEX "/sys/uring_none\\.c$")
  else()
    list(FILTER kept EXCLUDE REGEX "/sys/uring_lib\\.c$")
  endif()
  set(${out} ${kept} PARENT_SCOPE)
endfunction()

# What was found, for the end of the configuration and for `heddle doctor`.
function(hd_summary)
  get_property(found GLOBAL PROPERTY hd_libraries)
  get_property(landed GLOBAL PROPERTY hd_landed)
  list(REMOVE_DUPLICATES found)
  string(REPLACE ";" " " found "${found}")
  string(REPLACE ";" " " rooms "${landed}")
  set(HD_VERSION_LIBRARIES "${found}")
  set(HD_VERSION_ROOMS "${rooms}")
  configure_file(${CMAKE_SOURCE_DIR}/cmake/hd_build.h.in ${CMAKE_BINARY_DIR}/gen/hd_build.h @ONLY)
  message(STATUS "heddle ${PROJECT_VERSION}: preset ${HD_PRESET}, "
    "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}, ${CMAKE_BUILD_TYPE}")
  message(STATUS "  rooms      ${rooms}")
  message(STATUS "  libraries  ${found}")
  message(STATUS "  sanitizer  '${HD_SANITIZE}'  failpoints ${HD_FAILPOINTS}  tests ${HD_TESTS}")
endfunction()
