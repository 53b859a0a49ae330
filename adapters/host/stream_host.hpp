#pragma once
// What every real transport shares: commands, followers and file copies, all over one primitive.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "adapters/host/framing.hpp"
#include "adapters/host/host.hpp"
#include "base/random.hpp"

namespace campaign::host {

/// One framed command on its way, with streams instead of strings where that is wanted.
struct Exchange {
    std::vector<std::string> argv;   ///< framed
    std::string shown;
    bool has_input = false;
    std::function<Result<std::string>()> next_input;   ///< the next piece of standard input; an empty one ends it
    Framed framed;
    Millis deadline;        ///< from the call on; with `idle` from the last byte on
    bool idle = false;      ///< a copy may take as long as bytes move
    bool endless = false;   ///< a follower: no deadline once it runs
};

class StreamHost : public Host {
public:
    StreamHost(std::string name, bool sudo, Clock& clock, Random& random);

    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] std::string shown(const Command& command) const override;
    Async<Result<Finished>> run(Command command) override;
    Async<Result<bool>> follow(Command command, OnLine on_line) override;
    Async<Result<Fetched>> fetch(std::string from, std::filesystem::path to, OnBytes progress) override;
    Async<Result<Fetched>> send(std::filesystem::path from, std::string to, int mode, bool as_root) override;

protected:
    /// Runs it and judges by its frame. Errors as Host::run says. When the sink stopped it, the value means nothing.
    virtual Async<Result<Finished>> exchange(Exchange& exchange) = 0;

    Clock& clock_;
    Random& random_;
    const std::string name_;
    const bool sudo_;

private:
    Result<std::unique_ptr<Exchange>> prepare(const Command& command, Sink sink) const;
    Async<Result<Finished>> perform(const Command& command, Sink sink, bool endless);
    Async<Result<Fetched>> fetch_once(const std::string& from, const std::filesystem::path& to, const OnBytes& progress,
                                      bool as_root, std::uint64_t& reached);
};

}   // namespace campaign::host
