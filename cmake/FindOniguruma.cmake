# Oniguruma::Oniguruma. The library comes without a CMake package.
find_path(ONIGURUMA_INCLUDE_DIR oniguruma.h)
find_library(ONIGURUMA_LIBRARY onig)
mark_as_advanced(ONIGURUMA_INCLUDE_DIR ONIGURUMA_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Oniguruma REQUIRED_VARS ONIGURUMA_LIBRARY ONIGURUMA_INCLUDE_DIR)

# The library exports regcomp and regexec of its own. The C library is named before it, so that a
# program that calls these gets those of the C library. (g++ moves a plain -lc to the end.)
if(Oniguruma_FOUND AND NOT TARGET Oniguruma::Oniguruma)
  add_library(Oniguruma::Oniguruma INTERFACE IMPORTED)
  set_target_properties(Oniguruma::Oniguruma PROPERTIES
    INTERFACE_LINK_LIBRARIES "-Wl,-lc;${ONIGURUMA_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${ONIGURUMA_INCLUDE_DIR}")
endif()
