# Whole-program tests (tests/*_test.c and tests/program_*.sh), the tests of the tools
# (tests/*_test.sh) and fuzz targets. They may link every room; they find the program in
# HEDDLE_BIN.
get_property(landed GLOBAL PROPERTY hd_landed)
list(TRANSFORM landed PREPEND hd_ OUTPUT_VARIABLE HD_ALL_ROOMS)
list(REVERSE HD_ALL_ROOMS)

if(HD_TESTS)
  file(GLOB programs CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*_test.c)
  file(GLOB scripts CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/tests/*_test.sh ${CMAKE_SOURCE_DIR}/tests/program_*.sh)
  add_custom_target(tests_program)
  add_custom_target(tests_units)
  foreach(room ${landed})
    add_dependencies(tests_units tests_${room})
  endforeach()
  if(TARGET heddle)
    add_dependencies(tests_program heddle)
  else()
    set(programs "")          # no program in this configuration: nothing to test whole
  endif()
  foreach(source ${programs})
    get_filename_component(name ${source} NAME_WE)
    add_executable(program_${name} ${source})
    target_link_libraries(program_${name} PRIVATE ${HD_ALL_ROOMS} cmocka m)
    hd_quick_link(program_${name})
    add_dependencies(program_${name} hd_version)
    add_dependencies(tests_program program_${name})
    add_test(NAME program_${name} COMMAND program_${name})
    hd_test_properties(program_${name} 1200 program)
  endforeach()
  foreach(script ${scripts})
    file(STRINGS ${script} needs REGEX "^needs_failpoints$")
    if(needs AND NOT HD_FAILPOINTS)
      continue()
    endif()
    get_filename_component(name ${script} NAME_WE)
    string(REGEX REPLACE "^program_" "" name ${name})
    add_test(NAME program_${name} COMMAND bash ${script})
    hd_test_properties(program_${name} 1200 program)
  endforeach()
endif()

# What optimised code has to show beside the unit tests; the rest of the program's tests run once, in `debug`.
set(HD_RELEASE bits run resume memory)
if(HD_TESTS AND TARGET heddle)
  add_custom_target(tests_release DEPENDS heddle)
  foreach(name ${HD_RELEASE})
    set_property(TEST program_${name} APPEND PROPERTY LABELS release)
  endforeach()
  add_test(NAME program_elastic_bits COMMAND bash ${CMAKE_SOURCE_DIR}/tests/program_elastic.sh bits)
  hd_test_properties(program_elastic_bits 1200 release)
endif()

# What meets threads and takes seconds under ThreadSanitizer: `./dev test --preset tsan threads`.
set(HD_THREADS sys_barrier sys_thread sys_loop sys_socket sys_process sys_signal trace_ring trace_flight
  data_prefetch data_stream data_tokenize device_team device_shard wire_close wire_hub wire_hub_stranger
  worker_command worker_finals worker_allreduce worker_link worker_elastic worker_catchup engine_lockstep
  engine_meeting data_mix
  engine_forward engine_failure engine_pipe engine_post engine_tensor engine_nonfinite run_run run_samples
  engine_recorder launch_local_workers daemon_http daemon_jobs daemon_pool driver_pid_lock
  driver_store)
if(HD_TESTS)
  add_custom_target(tests_threads)
  foreach(name ${HD_THREADS})
    string(REGEX REPLACE "_.*" "" room ${name})
    if(room IN_LIST landed)
      add_dependencies(tests_threads ${name}_test)
      set_property(TEST ${name}_test APPEND PROPERTY LABELS threads)
    endif()
  endforeach()
  if(TARGET heddle AND HD_SANITIZE STREQUAL "tsan")
    add_dependencies(tests_threads heddle)
    add_test(NAME program_threads_live COMMAND bash ${CMAKE_SOURCE_DIR}/tests/threads_live.sh)
    hd_test_properties(program_threads_live 1200 program)
    set_property(TEST program_threads_live APPEND PROPERTY LABELS threads)
  endif()
endif()

# fuzz/<name>_fuzz.c: a test that replays the seeds and past findings of fuzz/corpus/<name>. With HD_FUZZ
# (preset asan) it is the libFuzzer target that `./dev fuzz` runs; what libFuzzer ends with otherwise, 77,
# would be a skip.
file(GLOB targets CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/fuzz/*_fuzz.c)
if(HD_TESTS AND targets)
  add_custom_target(tests_fuzz)
  add_dependencies(tests_units tests_fuzz)
  foreach(source ${targets})
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "_fuzz$" "" subject ${name})
    set(corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/${subject})
    if(HD_FUZZ)
      add_executable(${name} ${source})
      target_link_options(${name} PRIVATE -fsanitize=fuzzer)
      add_test(NAME fuzz_${subject} COMMAND ${name} -runs=0 -error_exitcode=1 -rss_limit_mb=2048 ${corpus})
    else()
      add_executable(${name} ${source} ${CMAKE_SOURCE_DIR}/fuzz/replay.c)
      add_test(NAME fuzz_${subject} COMMAND ${name} ${corpus})
    endif()
    add_dependencies(tests_fuzz ${name})
    hd_test_properties(fuzz_${subject} 300 fuzz)
    target_link_libraries(${name} PRIVATE ${HD_ALL_ROOMS} m)
    hd_quick_link(${name})
    add_dependencies(${name} hd_version)
  endforeach()
endif()

# ctest begins with what it thinks longest: seconds on two cores, until it has measured them itself. Without
# it the last of the alphabet would end alone.
set(HD_LONG program_redundancy 122 program_cluster 114 program_elastic 110 program_remote 107
  program_pipeline_workers 84 program_trial 81 program_spot 81 program_serve_kills 73 program_sharded 70
  program_takeover 65 program_chaos 60 program_pipeline 60 program_tensor_workers 50 program_remote_far 45
  program_simulate_spot 45 program_bridge_kills 20
  program_reshape 30 program_batches 30 program_page 30 program_identity 15
  program_threads_live 60 engine_post_test 52 run_choose_plan_test 48 engine_parcel_test 46
  engine_pipe_test 43 worker_catchup_test 40 spot_chosen_test 39 engine_rest_net_test 37
  protocol_simulation_test 35 scheduler_covered_test 35 planner_planner_wider_test 35 device_conform_test 34
  clustersim_sim_test 34 engine_tensor_test 25 scheduler_why_test 20 checkpoint_ckpt_test 15
  engine_worker_test 14 planner_planner_test 12 engine_dist_test 12 engine_dist_loss_test 12)
while(HD_TESTS AND HD_LONG)
  list(POP_FRONT HD_LONG name seconds)
  if(TEST ${name})
    set_property(TEST ${name} PROPERTY COST ${seconds})
  endif()
endwhile()
