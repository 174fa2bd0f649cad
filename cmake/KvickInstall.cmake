# What is installed: two components of libraries with their public headers, a CMake package that
# finds them, and the program.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/kvick")
set(package_files "${PROJECT_BINARY_DIR}/kvick-config.cmake"
                  "${PROJECT_BINARY_DIR}/kvick-config-version.cmake")

# kvick_install_component(NAME kvick_base ...): what find_package(kvick COMPONENTS NAME) provides.
function(kvick_install_component component)
  install(TARGETS ${ARGN} EXPORT kvick-${component}-targets FILE_SET HEADERS)
  install(EXPORT kvick-${component}-targets NAMESPACE kvick:: DESTINATION "${package_dir}")
endfunction()

kvick_install_component(attention kvick_base kvick_cache kvick_attention)
if(KVICK_BUILD_ENGINE)
  kvick_install_component(engine kvick_quant kvick_ops kvick_formats kvick_model kvick_engine)
  list(APPEND package_files "${PROJECT_SOURCE_DIR}/cmake/FindOniguruma.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/Findutf8proc.cmake")
endif()
if(KVICK_BUILD_PROGRAM)
  install(TARGETS kvick)
endif()

configure_package_config_file(cmake/kvick-config.cmake.in kvick-config.cmake
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(kvick-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${package_files} DESTINATION "${package_dir}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
