# The two ways to add a target here: a folder's library, and a folder's tests.

# What every translation unit is compiled with. The order of floating-point operations is what the
# code says: no contraction, never -ffast-math.
add_library(kvick_options INTERFACE)
target_compile_options(kvick_options INTERFACE -Wall -Wextra -Wshadow -ffp-contract=off)
if(KVICK_SANITIZE)
  target_compile_options(kvick_options INTERFACE -fsanitize=${KVICK_SANITIZE}
                         -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(kvick_options INTERFACE -fsanitize=${KVICK_SANITIZE})
endif()

# kvick_library(NAME SOURCES a.cc ... DEPENDS kvick_base ...): the library of the current folder.
function(kvick_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}/include"
                                            "${PROJECT_SOURCE_DIR}/src")
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS} kvick_options)
endfunction()

# kvick_test(NAME SOURCES a_test.cc ... DEPENDS kvick_cache ...): one GoogleTest binary.
function(kvick_test name)
  if(NOT KVICK_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} kvick_options GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 900)
endfunction()
