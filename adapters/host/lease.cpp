#include "adapters/host/lease.hpp"

#include <algorithm>

#include "adapters/host/file_errors.hpp"
#include "adapters/host/scripts.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace campaign::host {

namespace {

constexpr std::size_t largest = 4096;   // of the file; the scripts read no more

Command script(std::string_view text, std::vector<std::string> operands, bool as_root) {
    Command command;
    command.argv = {"sh", "-c", std::string{text}, "lease"};
    for (std::string& operand : operands) command.argv.push_back(std::move(operand));
    command.as_root = as_root;
    return command;
}

std::optional<Error> bad_token(const std::string& token) {
    const bool good = !token.empty() && token.size() <= 200 && std::all_of(token.begin(), token.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
               c == '_';
    });
    if (good) return std::nullopt;
    return Error{ErrorKind::usage, "'" + printable(token, 60) + "' is no token of a lease", "", "", ""};
}

}   // namespace

std::string lease_text(const Lease& lease) {
    json::object body;
    body["holder"] = lease.holder;
    body["campaign"] = lease.campaign;
    body["unit"] = lease.unit;
    body["why"] = lease.why;
    body["since"] = lease.since;
    body["until"] = lease.until;
    return lease.token + "\n" + json::serialize(body) + "\n";
}

Lease parse_lease(std::string_view text) {
    text = text.substr(0, largest);
    const std::size_t end = std::min(text.find('\n'), text.size());
    Lease lease;
    lease.token = std::string{text.substr(0, end)};
    const auto body = parse_json(text.substr(std::min(end + 1, text.size())), "a lease");
    const auto field = [&body](const char* key) {
        return body ? string_at(*body, key).value_or("").substr(0, 300) : std::string{};
    };
    lease.holder = field("holder");
    lease.campaign = field("campaign");
    lease.unit = field("unit");
    lease.why = field("why");
    lease.since = field("since");
    lease.until = field("until");
    return lease;
}

std::string in_words(const Lease& lease) {
    if (lease.holder.empty() && lease.campaign.empty()) return "somebody unknown: the lease on the host cannot be read";
    std::string text = "campaign " + printable(lease.campaign, 100) + " of " + printable(lease.holder, 200);
    if (!lease.why.empty()) text += " (" + printable(lease.why, 200) + ")";
    if (!lease.since.empty()) text += ", since " + printable(lease.since, 40);
    if (!lease.until.empty()) text += ", until " + printable(lease.until, 40) + " at the latest";
    return text;
}

std::string lease_name(std::string_view unit) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string name;
    for (const char c : unit) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                           c == '.' || c == '_' || c == '@';
        if (plain) {
            name += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            name += '%';
            name += digits[byte / 16];
            name += digits[byte % 16];
        }
    }
    return name.substr(0, 200) + ".lease";
}

Async<Result<std::optional<Lease>>> take_lease(Host& host, std::string folder, Lease lease, bool as_root) {
    if (const auto error = bad_path(folder)) co_return *error;
    if (const auto error = bad_token(lease.token)) co_return *error;
    Command command = script(scripts::take_lease, {folder, lease_name(lease.unit), lease.token}, as_root);
    command.input = lease_text(lease);
    const Result<Finished> run = co_await host.run(std::move(command));
    if (!run) co_return run.error();
    if (run->exit_code == 0) co_return std::optional<Lease>{};
    if (run->exit_code == 75) co_return std::optional<Lease>{parse_lease(run->output)};
    co_return file_error(host.name(), "take the lease on " + lease.unit, *run);
}

Async<Result<std::optional<Lease>>> read_lease(Host& host, std::string folder, std::string unit) {
    if (const auto error = bad_path(folder)) co_return *error;
    Command command = script(scripts::read_lease, {folder, lease_name(unit)}, false);
    const Result<Finished> run = co_await host.run(std::move(command));
    if (!run) co_return run.error();
    if (run->exit_code != 0) co_return file_error(host.name(), "read the lease on " + unit, *run);
    if (run->output.empty()) co_return std::optional<Lease>{};
    co_return std::optional<Lease>{parse_lease(run->output)};
}

Async<Result<bool>> release_lease(Host& host, std::string folder, std::string unit, std::string token, bool as_root) {
    if (const auto error = bad_path(folder)) co_return *error;
    if (const auto error = bad_token(token)) co_return *error;
    Command command = script(scripts::release_lease, {folder, lease_name(unit), token}, as_root);
    const Result<Finished> run = co_await host.run(std::move(command));
    if (!run) co_return run.error();
    if (run->exit_code != 0) co_return file_error(host.name(), "give back the lease on " + unit, *run);
    co_return trim(run->output) == "released";
}

}   // namespace campaign::host
