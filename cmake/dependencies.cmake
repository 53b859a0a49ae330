# Every dependency is a Debian package; ARCHITECTURE.md gives each one's reason.

set(Boost_USE_STATIC_LIBS ON)
set(Boost_NO_WARN_NEW_VERSIONS ON)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(CURL REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(spdlog REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(libssh REQUIRED IMPORTED_TARGET libssh)
pkg_check_modules(libsystemd REQUIRED IMPORTED_TARGET libsystemd)
find_path(CLI11_INCLUDE CLI/CLI.hpp REQUIRED)

# Asio and Beast are compiled once, in base/asio.cpp.
add_library(campaign_boost INTERFACE)
target_link_libraries(campaign_boost INTERFACE Boost::headers Boost::json OpenSSL::SSL OpenSSL::Crypto Threads::Threads)
target_compile_definitions(campaign_boost INTERFACE
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_COROUTINE)
