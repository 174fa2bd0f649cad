# CTemplate::CTemplate. The library has no CMake package of its own.
find_path(CTEMPLATE_INCLUDE_DIR ctemplate/template.h)
find_library(CTEMPLATE_LIBRARY ctemplate)
mark_as_advanced(CTEMPLATE_INCLUDE_DIR CTEMPLATE_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CTemplate REQUIRED_VARS CTEMPLATE_LIBRARY CTEMPLATE_INCLUDE_DIR)

if(CTemplate_FOUND AND NOT TARGET CTemplate::CTemplate)
  add_library(CTemplate::CTemplate UNKNOWN IMPORTED)
  set_target_properties(CTemplate::CTemplate PROPERTIES
    IMPORTED_LOCATION "${CTEMPLATE_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${CTEMPLATE_INCLUDE_DIR}")
endif()
