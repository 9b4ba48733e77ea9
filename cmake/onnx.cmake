# gen/onnx.pb-c.[ch]: the messages of the ONNX format, made by protoc-c from the
# definition that libonnx-dev installs (include/onnx/onnx.proto). No C++ is linked.
function(hd_onnx_messages out)
  find_program(HD_PROTOC_C protoc-c)
  find_file(HD_ONNX_PROTO onnx/onnx.proto)
  mark_as_advanced(HD_PROTOC_C HD_ONNX_PROTO)
  if(NOT HD_PROTOC_C)
    message(FATAL_ERROR
      "room graph needs protoc-c for the ONNX messages: apt-get install protobuf-c-compiler")
  endif()
  if(NOT HD_ONNX_PROTO)
    message(FATAL_ERROR "room graph needs onnx/onnx.proto for the ONNX messages: apt-get install libonnx-dev")
  endif()
  get_filename_component(folder ${HD_ONNX_PROTO} DIRECTORY)
  set(made ${CMAKE_BINARY_DIR}/gen/onnx.pb-c.c ${CMAKE_BINARY_DIR}/gen/onnx.pb-c.h)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/gen)
  add_custom_command(OUTPUT ${made}
    COMMAND ${HD_PROTOC_C} --c_out=${CMAKE_BINARY_DIR}/gen --proto_path=${folder} ${HD_ONNX_PROTO}
    DEPENDS ${HD_ONNX_PROTO} COMMENT "ONNX messages by protoc-c" VERBATIM)
  # Generated code is not held to our warnings.
  set_source_files_properties(${CMAKE_BINARY_DIR}/gen/onnx.pb-c.c PROPERTIES
    COMPILE_OPTIONS "-w" GENERATED TRUE)
  set(${out} ${made} PARENT_SCOPE)
endfunction()
