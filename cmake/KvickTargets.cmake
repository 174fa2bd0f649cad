# How targets are added: the library of a folder, and the tests of a folder.

# The options of every translation unit in this project; users do not get them. They add the headers
# of src/, and fmt, with which base/check.h formats errors. The compiler keeps the order of
# floating-point operations of the source: no contraction, never -ffast-math.
add_library(kvick_options INTERFACE)
target_include_directories(kvick_options INTERFACE "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(kvick_options INTERFACE fmt::fmt)
target_compile_options(kvick_options INTERFACE -Wall -Wextra -Wshadow -ffp-contract=off)
if(KVICK_SANITIZE)
  target_compile_options(kvick_options INTERFACE -fsanitize=${KVICK_SANITIZE}
                         -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(kvick_options INTERFACE -fsanitize=${KVICK_SANITIZE})
endif()

# kvick_library(kvick_NAME HEADERS public.h ... SOURCES a.cc ... DEPENDS kvick_base ...): the
# library of the current folder, kvick::NAME in other projects. DEPENDS are public dependencies.
function(kvick_library name)
  cmake_parse_arguments(ARG "" "" "HEADERS;SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  string(REPLACE "kvick_" "" export_name "${name}")
  list(TRANSFORM ARG_HEADERS PREPEND "${PROJECT_SOURCE_DIR}/include/kvick/")

  add_library(${name} STATIC ${ARG_SOURCES})
  add_library(kvick::${export_name} ALIAS ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME "${export_name}"
                                           POSITION_INDEPENDENT_CODE ON)
  target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include"
                                FILES ${ARG_HEADERS})
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS}
                                PRIVATE ${ARG_PRIVATE_DEPENDS} $<BUILD_INTERFACE:kvick_options>)
endfunction()

# kvick_test(NAME SOURCES a_test.cc ... DEPENDS kvick_cache ...): one GoogleTest binary. NAME is also
# the label of its tests: ctest -L cache_test
function(kvick_test name)
  if(NOT KVICK_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} kvick_options GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 900 LABELS ${name})
endfunction()
