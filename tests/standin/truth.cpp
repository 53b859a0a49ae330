#include "tests/standin/truth.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace standin {

std::int64_t realtime_us() {
    using namespace std::chrono;
    return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

void Truth::tell(std::string_view event, boost::json::object more) const {
    if (path_.empty()) return;
    boost::json::object line{{"event", event}, {"at_us", realtime_us()}, {"pid", static_cast<std::int64_t>(::getpid())}};
    for (auto& [key, value] : more) line.insert_or_assign(key, value);
    const std::string text = boost::json::serialize(line) + "\n";
    const int fd = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        std::perror(("stand-in: " + path_).c_str());
        return;
    }
    if (::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::perror("stand-in: truth");
    ::close(fd);
}

}   // namespace standin
