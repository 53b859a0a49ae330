# A room is a folder with one target. Its headers are found as "FOLDER/name.hpp", and only by targets that link the room:
# each room's include path holds a link to that one folder and nothing else, so an arrow that ARCHITECTURE.md does not draw
# fails to build. ('#include "../' would go around it: ./dev lint refuses that.)
#
#   room(NAME FOLDER [SOURCES ...] [USES rooms...] [LIBRARIES ...])

function(room_includes target folder)
  string(REPLACE "/" "_" flat ${folder})
  set(entry ${CMAKE_BINARY_DIR}/rooms/${flat})
  get_filename_component(parent ${folder} DIRECTORY)
  file(MAKE_DIRECTORY ${entry}/${parent})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${folder} ${entry}/${folder} SYMBOLIC)
  target_include_directories(${target} PUBLIC ${entry})
endfunction()

function(room name folder)
  cmake_parse_arguments(ROOM "" "" "SOURCES;USES;LIBRARIES" ${ARGN})
  add_library(${name} STATIC ${ROOM_SOURCES})
  room_includes(${name} ${folder})
  target_link_libraries(${name} PUBLIC ${ROOM_USES} ${ROOM_LIBRARIES} PRIVATE campaign_options)
endfunction()

# Rooms that use Asio share one precompiled header (base/async_pch.hpp).
function(asio_room name folder)
  room(${name} ${folder} ${ARGN})
  target_precompile_headers(${name} REUSE_FROM base)
endfunction()
