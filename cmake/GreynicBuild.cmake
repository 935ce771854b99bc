# Settings and the three functions every room uses: greynic_library, greynic_tests, greynic_optional.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
# Most code runs once a command: -O1 compiles a third faster than -O3 and nobody can tell. Rooms that compute say HOT
# and get -O2; the two whose inner loops -O3 makes 5 and 12 % faster say HOTTEST (-O3 compiles up to 1.6 times as long).
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")
# Headers cost more than code: many files of a room at a time need half the time of each by itself. The preset dev
# compiles file by file, and clang-tidy reads what it says, so that each stays whole on its own.
option(GREYNIC_JOIN_FILES "Compile many files of a room at a time" OFF)
set(GREYNIC_SANITIZE "" CACHE STRING "Value of -fsanitize=, e.g. address,undefined")

find_program(GREYNIC_CCACHE ccache)
if(GREYNIC_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${GREYNIC_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${GREYNIC_CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)

add_library(greynic_settings INTERFACE)
# Designated initialisers leave the rest at its default on purpose; -Wrestrict has false positives on
# std::string in gcc 12 (GCC bug 105651);
# -Wdangling-else cries at every `if (x) EXPECT_...`. What gcc takes, clang builds for its fuzzer only.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(greynic_settings INTERFACE -Wall -Wextra -Wshadow -Wpedantic -Werror
    -Wno-missing-field-initializers -Wno-restrict -Wno-dangling-else)
endif()
# Counting bits is an inner loop; every x86-64 processor since 2009 has an instruction for it.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(greynic_settings INTERFACE -mpopcnt)
endif()
if(GREYNIC_SANITIZE)
  # Instrumented code confuses -Wmaybe-uninitialized (GCC bug 105562: std::regex).
  target_compile_options(greynic_settings INTERFACE -fsanitize=${GREYNIC_SANITIZE}
    -fno-omit-frame-pointer $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  if(GREYNIC_SANITIZE STREQUAL "thread")
    # It does not model fences, and says so; what ours order are atomics, word by word.
    target_compile_options(greynic_settings INTERFACE -Wno-tsan)
  endif()
  target_link_options(greynic_settings INTERFACE -fsanitize=${GREYNIC_SANITIZE})
endif()

function(greynic_join_files target)
  if(GREYNIC_JOIN_FILES)
    # As few units as take 17 files at most, and all of about one size.
    get_target_property(sources ${target} SOURCES)
    list(LENGTH sources count)
    math(EXPR units "(${count} + 16) / 17")
    math(EXPR files "(${count} + ${units} - 1) / ${units}")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${files})
    # Types of one file are not used in another, though gcc cannot see where a file ends.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# greynic_library(NAME [HOT|HOTTEST] [FOLDERS folder...] [PUBLIC lib...] [PRIVATE lib...] [ONCE file...]): one room, one
# static library. Public headers are include/. Sources are src/*.cc, or FOLDER/*.cc of a larger room, whose private
# headers are then included by their path in the room: "engine/row_order.h". HOT, HOTTEST: a release
# compiles it with -O2 or -O3, but for the files ONCE, which read or write a file once a command.
function(greynic_library name)
  cmake_parse_arguments(arg "HOT;HOTTEST" "" "FOLDERS;PUBLIC;PRIVATE;ONCE" ${ARGN})
  set(private ${CMAKE_CURRENT_SOURCE_DIR})
  if(NOT arg_FOLDERS)
    set(arg_FOLDERS src)
    set(private ${CMAKE_CURRENT_SOURCE_DIR}/src)
  endif()
  set(sources "")
  foreach(folder ${arg_FOLDERS})
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
    list(APPEND sources ${found})
  endforeach()
  if(arg_ONCE)
    list(TRANSFORM arg_ONCE PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    list(REMOVE_ITEM sources ${arg_ONCE})
    add_library(greynic_${name}_once OBJECT ${arg_ONCE})
    target_include_directories(greynic_${name}_once PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/include ${private})
    target_link_libraries(greynic_${name}_once PRIVATE greynic_settings ${arg_PUBLIC} ${arg_PRIVATE})
    greynic_join_files(greynic_${name}_once)
    list(APPEND sources $<TARGET_OBJECTS:greynic_${name}_once>)
  endif()
  add_library(greynic_${name} STATIC ${sources})
  add_library(greynic::${name} ALIAS greynic_${name})
  target_include_directories(greynic_${name}
    PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include> PRIVATE ${private})
  target_link_libraries(greynic_${name}
    PUBLIC ${arg_PUBLIC} PRIVATE $<BUILD_INTERFACE:greynic_settings> ${arg_PRIVATE})
  if(arg_HOT OR arg_HOTTEST)
    target_compile_options(greynic_${name} PRIVATE $<$<CONFIG:Release>:-O$<IF:$<BOOL:${arg_HOTTEST}>,3,2>>
                           $<$<CONFIG:RelWithDebInfo>:-O1>)
    if(GREYNIC_JOIN_FILES AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # gcc stops inlining where a large unit has grown by two fifths. Joined files may be as large as all of them: with
      # the limit for one, inner loops called push_back.
      target_compile_options(greynic_${name} PRIVATE --param=large-unit-insns=100000)
    endif()
  endif()
  greynic_join_files(greynic_${name})
endfunction()

# greynic_suite(TARGET [SANITIZED] [LABELS label...] [TIMEOUT seconds] [MORE property value...]): each TEST of this
# program is a ctest case. Under a sanitizer it may take ten times as long. SANITIZED: the sanitizer presets run it,
# though it has not the label unit.
function(greynic_suite target)
  cmake_parse_arguments(arg "SANITIZED" "TIMEOUT" "LABELS;MORE" ${ARGN})
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  target_link_libraries(${target} PRIVATE greynic_settings fmt::fmt)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support)
  if(GREYNIC_SANITIZE)
    target_compile_definitions(${target} PRIVATE GREYNIC_SANITIZED)  # tests/support/sized.h
    math(EXPR arg_TIMEOUT "10 * ${arg_TIMEOUT}")
  endif()
  if("unit" IN_LIST arg_LABELS OR arg_SANITIZED)
    set_property(GLOBAL APPEND PROPERTY GREYNIC_UNIT_TESTS ${target})
  endif()
  if(GREYNIC_SANITIZE AND arg_SANITIZED)
    set(arg_LABELS sanitized)
  endif()
  # A program under a sanitizer, on a busy machine, takes more than the usual 5 s to list its tests.
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} ${arg_MORE})
endfunction()

# greynic_tests(ROOM [PROGRAM] [APART] [SANITIZED] [FOLDERS folder...] [LINK lib...] [LABELS label...] [TIMEOUT seconds]):
# all *_test.cc of this folder, or of these in it, as one suite. PROGRAM: the tests
# run greynic itself (GREYNIC_BINARY). APART: files that use the same names for different things, never joined.
function(greynic_tests room)
  cmake_parse_arguments(arg "PROGRAM;APART;SANITIZED" "TIMEOUT" "FOLDERS;LINK;LABELS" ${ARGN})
  if(NOT arg_FOLDERS)
    set(arg_FOLDERS .)
  endif()
  set(sources "")
  foreach(folder ${arg_FOLDERS})
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*_test.cc)
    list(APPEND sources ${found})
  endforeach()
  add_executable(${room}_tests ${sources})
  if(NOT arg_APART)
    greynic_join_files(${room}_tests)
  endif()
  target_link_libraries(${room}_tests PRIVATE ${arg_LINK} GTest::gtest_main)
  target_compile_definitions(${room}_tests PRIVATE GREYNIC_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(arg_PROGRAM)
    target_compile_definitions(${room}_tests PRIVATE GREYNIC_BINARY="$<TARGET_FILE:greynic>")
    add_dependencies(${room}_tests greynic)
  endif()
  set(sanitized "")
  if(arg_SANITIZED)
    set(sanitized SANITIZED)
  endif()
  greynic_suite(${room}_tests ${sanitized} LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT})
endfunction()

# greynic_grpc(NAME FILE): the library greynic_NAME of what protoc makes of FILE. For rooms that have found
# GREYNIC_PROTOC, GREYNIC_GRPC_PLUGIN and GREYNIC_HAVE_GRPC (harness/agent).
function(greynic_grpc name file)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/proto)
  get_filename_component(folder ${file} DIRECTORY)
  get_filename_component(stem ${file} NAME_WE)
  file(MAKE_DIRECTORY ${made})
  add_custom_command(
    OUTPUT ${made}/${stem}.pb.cc ${made}/${stem}.pb.h ${made}/${stem}.grpc.pb.cc ${made}/${stem}.grpc.pb.h
    COMMAND ${GREYNIC_PROTOC} -I ${folder} --cpp_out=${made} --grpc_out=${made}
            --plugin=protoc-gen-grpc=${GREYNIC_GRPC_PLUGIN} ${file}
    DEPENDS ${file})
  # Generated code is not held to our warnings.
  add_library(greynic_${name} STATIC ${made}/${stem}.pb.cc ${made}/${stem}.grpc.pb.cc)
  target_include_directories(greynic_${name} SYSTEM PUBLIC ${made})
  target_link_libraries(greynic_${name} PUBLIC PkgConfig::greynic_have_grpc_pc)
  if(GREYNIC_SANITIZE STREQUAL "thread")
    # protobuf gives maps two members more when it sees the macro. Debian's library, which handles them, has been
    # built without.
    target_compile_options(greynic_${name} PUBLIC -U__SANITIZE_THREAD__)
  endif()
endfunction()

# greynic_optional(VAR what-is-lost pkg-config-module...): VAR is ON when every module is there;
# else one line says what is switched off and which package brings it back.
function(greynic_optional var loss)
  string(TOLOWER "${var}_pc" prefix)
  pkg_check_modules(${prefix} QUIET IMPORTED_TARGET ${ARGN})
  if(${prefix}_FOUND)
    set(${var} ON PARENT_SCOPE)
  else()
    set(${var} OFF PARENT_SCOPE)
    message(STATUS "off: ${loss} (needs ${ARGN}; scripts/setup.sh installs it)")
  endif()
endfunction()

# greynic_embed(OUT function file...): OUT defines `std::span<const greynic::EmbeddedFile> function()`
# that holds the files' names (without folder) and bytes, so that the program needs no file of its own.
function(greynic_embed out function)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} "-DOUT=${out}" "-DFUNCTION=${function}" "-DFILES=${ARGN}"
            -P ${PROJECT_SOURCE_DIR}/cmake/Embed.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/Embed.cmake
    COMMENT "Embedding into ${out}" VERBATIM)
  set_source_files_properties(${out} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# greynic_vm_test(NAME [SETUP setup] [TIMEOUT seconds] [MEMORY mib] [COUNT_INSTRUCTIONS] [SANITIZED target] [ADDRESS_ONLY]
# COMMAND command...): a ctest case that runs one command in the small machine of tests/vm. A boot costs seconds, so
# one case is a whole suite. SANITIZED: the sanitizer presets build this target and run the case too; not under the
# thread sanitizer what has ADDRESS_ONLY.
function(greynic_vm_test name)
  cmake_parse_arguments(arg "COUNT_INSTRUCTIONS;ADDRESS_ONLY" "SETUP;TIMEOUT;MEMORY;SANITIZED" "COMMAND" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  set(options "")
  set(labels device)
  if(GREYNIC_SANITIZE)
    # Where those who poll keep all cores, slow as they are, counters are not read in time.
    math(EXPR arg_TIMEOUT "5 * ${arg_TIMEOUT}")
    set(arg_MEMORY 3072)
    list(APPEND options --cpus 4 --env UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
                        --env TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp)
  endif()
  if(arg_SANITIZED AND NOT (arg_ADDRESS_ONLY AND GREYNIC_SANITIZE STREQUAL "thread"))
    list(APPEND labels sanitized)
    set_property(GLOBAL APPEND PROPERTY GREYNIC_UNIT_TESTS ${arg_SANITIZED})
  endif()
  list(APPEND options --timeout ${arg_TIMEOUT})
  if(arg_SETUP)
    list(APPEND options --setup ${arg_SETUP})
  endif()
  if(arg_MEMORY)
    list(APPEND options --memory ${arg_MEMORY})
  endif()
  if(arg_COUNT_INSTRUCTIONS)
    list(APPEND options --count-instructions)
  endif()
  math(EXPR limit "${arg_TIMEOUT} + 60")
  add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tests/vm/run ${options} -- ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77 TIMEOUT ${limit}
                       PROCESSORS 2 RESOURCE_LOCK small_machine)
endfunction()
