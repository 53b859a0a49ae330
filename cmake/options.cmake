# Warnings, sanitizers and the speed of the build: what every target shares.

add_library(campaign_options INTERFACE)
target_compile_options(campaign_options INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Werror=return-type -Werror=unused-result
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
# False alarms of g++ 12 at -O2, in coroutine frames (Asio's operator delete) and in std::string's inlined copies.
target_compile_options(campaign_options INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-maybe-uninitialized -Wno-dangling-pointer>)
option(CAMPAIGN_WERROR "Warnings are errors" ON)
if(CAMPAIGN_WERROR)
  target_compile_options(campaign_options INTERFACE -Werror)
endif()

set(CAMPAIGN_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize= (address,undefined or thread)")
if(CAMPAIGN_SANITIZE)
  add_compile_options(-fsanitize=${CAMPAIGN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${CAMPAIGN_SANITIZE})
endif()

# Our programs start in a millisecond: fewer shared objects to relocate, no symbol search through libstdc++.
add_link_options(-Wl,-z,relro,-z,now -Wl,--as-needed)
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_PCH_EXTSUM=1 ${CCACHE})
endif()
