# Debian's cross compiler for aarch64, and programs run by qemu-user. The libraries are those that
# tools/install_packages.sh aarch64 unpacks.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CXX_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)

# Nothing of this machine but its programs.
set(libraries "${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-libraries")
set(CMAKE_FIND_ROOT_PATH "${libraries}")
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES "${libraries}/usr/include/aarch64-linux-gnu")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
