#pragma once
// Where, inside a service's command line, the inference server's own words begin and end.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace campaign::systemd {

using Words = std::span<const std::string>;

/// The last part of a path.
[[nodiscard]] std::string_view base_name(std::string_view path);

/// A process that shows a title in place of its argv ("VLLM::EngineCore"): a child of a server, never the server.
[[nodiscard]] bool is_title(Words argv);

/// Programs that hold another command in their argv and stay as its parent (shells, container tools, nsys, uv, ...): their
/// own process is never the server, whatever their words say.
[[nodiscard]] bool is_holder(Words argv);

/// How many words at the beginning belong to programs that replace themselves by the next one (env, numactl, taskset, nice,
/// ionice, chrt, stdbuf, setpriv) with their options. nullopt where an option is not known, so that the end is not either.
[[nodiscard]] std::optional<std::size_t> launcher_words(Words argv);

/// Is `running` (from /proc) what `configured` (from D-Bus) becomes? An interpreter may stand in front, the program may have
/// got its folder, and words with '$' may have become any number of words. `configured` starts at the program itself.
[[nodiscard]] bool same_command(Words configured, Words running);

/// Do all of `arguments` stand one after another in `running`? Words with '$' match anything.
[[nodiscard]] bool passed_on(Words arguments, Words running);

/// A string for `sh -c` whose last command is the server and where more arguments may be put at the end.
struct ShellString {
    std::size_t server_at = 0;               ///< offset of the server's first word
    std::size_t end_at = 0;                  ///< where further arguments go
    std::vector<std::string> server_words;   ///< as far as they can be read without running a shell
};
/// nullopt with `obstacle` set where something follows the server or the shape is not understood. "$$" counts as '$', as
/// systemd passes it on.
[[nodiscard]] std::optional<ShellString> read_shell_string(std::string_view text, std::string& obstacle);

/// Index of the word after -c, for `sh -c STRING`, `bash -lc STRING`; nullopt if the command is no such thing.
[[nodiscard]] std::optional<std::size_t> shell_string_index(Words argv);

/// Index of the image in `docker run ...` or `podman run ...`; nullopt with `unknown` naming the option whose arity is not
/// known.
[[nodiscard]] std::optional<std::size_t> image_index(Words argv, std::string& unknown);

}   // namespace campaign::systemd
