#pragma once
// The stand-in's own record of what really happened, one JSON object a line, for tests that prove what a campaign did.

#include <boost/json.hpp>
#include <cstdint>
#include <string>

namespace standin {

/// Microseconds of the real-time clock.
[[nodiscard]] std::int64_t realtime_us();

class Truth {
public:
    /// "" writes nothing.
    explicit Truth(std::string path) : path_{std::move(path)} {}
    /// Appends `{"event": name, "at_us": now, "pid": own, ...more}` in one write.
    void tell(std::string_view event, boost::json::object more = {}) const;

private:
    std::string path_;
};

}   // namespace standin
