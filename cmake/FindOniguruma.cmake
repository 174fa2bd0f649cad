# Oniguruma::Oniguruma. The library comes without a CMake package.
find_path(ONIGURUMA_INCLUDE_DIR oniguruma.h)
find_library(ONIGURUMA_LIBRARY onig)
mark_as_advanced(ONIGURUMA_INCLUDE_DIR ONIGURUMA_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Oniguruma REQUIRED_VARS ONIGURUMA_LIBRARY ONIGURUMA_INCLUDE_DIR)

if(Oniguruma_FOUND AND NOT TARGET Oniguruma::Oniguruma)
  add_library(Oniguruma::Oniguruma UNKNOWN IMPORTED)
  set_target_properties(Oniguruma::Oniguruma PROPERTIES
    IMPORTED_LOCATION "${ONIGURUMA_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${ONIGURUMA_INCLUDE_DIR}")
endif()
