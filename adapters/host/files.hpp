#pragma once
// Small files on a host, by commands that every Debian host has. Each is one framed command.

#include <optional>
#include <string>
#include <vector>

#include "adapters/host/host.hpp"

namespace campaign::host {

struct WrittenFile {
    std::string path;
    std::string sha256;   ///< read back from the disk there
};

/// Writes content atomically: free space checked, NAME.part.NONCE beside the target, sync, hash read back, rename, folder
/// synced. Makes the folder (0755). Fails with disk_full, refused (rights), io; in_doubt when the link went.
Async<Result<WrittenFile>> write_file(Host& host, std::string path, std::string content, int mode, bool as_root);

/// Content of a small file (at most 1 MiB); not_found if there is none.
Async<Result<std::string>> read_file(Host& host, std::string path, bool as_root);

/// Removes exactly this file if its content has this hash. true: removed now; false: there was none.
/// conflict: it is there with another content, and was not touched.
Async<Result<bool>> remove_file(Host& host, std::string path, std::string sha256, bool as_root);

/// Removes a folder if it is empty; anything else is left, and that is no error.
Async<Result<void>> remove_empty_dir(Host& host, std::string path, bool as_root);

struct FileFact {
    std::string path;
    std::uint64_t size = 0;
    double modified = 0;   ///< Unix seconds by the host's clock
    bool open_for_writing = false;
};

/// Regular files directly in a folder, sorted by name, each with whether some process still has it open for writing.
/// At most 10,000. An absent folder is an empty list.
Async<Result<std::vector<FileFact>>> list_files(Host& host, std::string folder, bool as_root);

}   // namespace campaign::host
