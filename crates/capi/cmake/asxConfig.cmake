# asx as a CMake package: asx::asx (static) and asx::shared.
get_filename_component(asx_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_package(Threads REQUIRED)

if(NOT TARGET asx::asx)
  add_library(asx::asx STATIC IMPORTED)
  set_target_properties(asx::asx PROPERTIES
    IMPORTED_LOCATION "${asx_prefix}/lib/libasx.a"
    INTERFACE_INCLUDE_DIRECTORIES "${asx_prefix}/include"
    INTERFACE_LINK_LIBRARIES Threads::Threads)
  add_library(asx::shared SHARED IMPORTED)
  set_target_properties(asx::shared PROPERTIES
    IMPORTED_LOCATION "${asx_prefix}/lib/libasx.so.0"
    IMPORTED_SONAME libasx.so.0
    INTERFACE_INCLUDE_DIRECTORIES "${asx_prefix}/include")
endif()
unset(asx_prefix)
