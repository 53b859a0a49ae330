#include "instruments/startup/stamp.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>

namespace campaign::startup {
namespace {

/// Reads numbers and the characters between them; any mismatch makes it bad for good.
class Scan {
public:
    explicit Scan(std::string_view text) : text_{text} {}

    int number(std::size_t digits) {
        if (text_.size() < at_ + digits) return fail();
        int value = 0;
        const char* const from = text_.data() + at_;
        const auto [end, error] = std::from_chars(from, from + digits, value);
        if (error != std::errc{} || end != from + digits) return fail();
        at_ += digits;
        return value;
    }
    void one_of(std::string_view allowed) {
        if (at_ < text_.size() && allowed.find(text_[at_]) != std::string_view::npos) {
            ++at_;
        } else {
            fail();
        }
    }
    /// ".123", ",573": as a part of one; nothing is 0.
    double fraction() {
        if (at_ >= text_.size() || (text_[at_] != '.' && text_[at_] != ',')) return 0;
        double value = 0;
        double unit = 0.1;
        for (++at_; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_, unit /= 10)
            value += unit * (text_[at_] - '0');
        return value;
    }
    /// "+02:00", "-0700", "Z" or nothing: seconds to take off.
    int zone() {
        if (at_ >= text_.size() || (text_[at_] != '+' && text_[at_] != '-')) return 0;
        const int sign = text_[at_++] == '-' ? -1 : 1;
        const int hours = number(2);
        if (at_ < text_.size() && text_[at_] == ':') ++at_;
        const int minutes = number(2);
        return good_ ? sign * (hours * 3600 + minutes * 60) : 0;
    }
    void skip(std::size_t count) { at_ += count; }
    [[nodiscard]] std::string_view rest() const { return at_ < text_.size() ? text_.substr(at_) : std::string_view{}; }
    [[nodiscard]] bool good() const { return good_; }

private:
    int fail() {
        good_ = false;
        return 0;
    }
    std::string_view text_;
    std::size_t at_ = 0;
    bool good_ = true;
};

std::optional<double> calendar(int year, int month, int day, double of_day) {
    using namespace std::chrono;
    const year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                              std::chrono::day{static_cast<unsigned>(day)}};
    if (!date.ok()) return std::nullopt;
    return static_cast<double>(sys_days{date}.time_since_epoch().count()) * 86400.0 + of_day;
}

double clock(Scan& scan) {
    const int hours = scan.number(2);
    scan.one_of(":");
    const int minutes = scan.number(2);
    scan.one_of(":");
    return hours * 3600.0 + minutes * 60.0 + scan.number(2);
}

int month_named(std::string_view name) {
    constexpr std::string_view names = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const std::size_t at = name.size() < 3 ? std::string_view::npos : names.find(name.substr(0, 3));
    return at == std::string_view::npos || at % 3 != 0 ? 0 : static_cast<int>(at / 3) + 1;
}

}   // namespace

Stamp::Stamp(Form form, std::string_view text) : form_{form} {
    size_ = static_cast<std::uint8_t>(std::min(text.size(), text_.size()));
    std::copy_n(text.data(), size_, text_.data());
}

std::optional<double> Stamp::seconds(int year) const {
    const std::string_view text{text_.data(), size_};
    Scan scan{text};
    int month = 0;
    int day = 0;
    double of_day = 0;
    switch (form_) {
        case Form::none: return std::nullopt;
        case Form::dated:
            year = scan.number(4);
            scan.one_of("-");
            month = scan.number(2);
            scan.one_of("-");
            day = scan.number(2);
            scan.one_of("T ");
            of_day = clock(scan);
            of_day += scan.fraction();
            of_day -= scan.zone();
            break;
        case Form::american:
            month = scan.number(2);
            scan.one_of("/");
            day = scan.number(2);
            scan.one_of("/");
            year = scan.number(4);
            scan.one_of("-");
            of_day = clock(scan);
            break;
        case Form::classic:
            month = month_named(text);
            scan.skip(4);
            if (scan.rest().starts_with(' ')) {
                scan.skip(1);
                day = scan.number(1);
            } else {
                day = scan.number(2);
            }
            scan.one_of(" ");
            of_day = clock(scan);
            break;
        case Form::yearless:
            month = scan.number(2);
            scan.one_of("-");
            day = scan.number(2);
            scan.one_of(" ");
            of_day = clock(scan);
            break;
        case Form::relative: {
            int parts[4] = {};
            const char* at = text.data();
            const char* const end = at + text.size();
            for (int& part : parts) {
                const auto [next, error] = std::from_chars(at, end, part);
                if (error != std::errc{}) return std::nullopt;
                at = next == end ? end : next + 1;
            }
            return parts[0] * 60.0 + parts[1] + parts[2] / 1e3 + parts[3] / 1e6;
        }
    }
    return scan.good() && month > 0 ? calendar(year, month, day, of_day) : std::nullopt;
}

std::optional<double> seconds_between(const Stamp& from, const Stamp& to, int year) {
    if (from.relative() != to.relative()) return std::nullopt;
    const auto first = from.seconds(year);
    auto last = to.seconds(year);
    if (!first || !last) return std::nullopt;
    const bool no_year = to.form() == Stamp::Form::classic || to.form() == Stamp::Form::yearless;
    if (no_year && *last < *first - 86400.0 * 180) last = to.seconds(year + 1);
    return last ? std::optional{*last - *first} : std::nullopt;
}

}   // namespace campaign::startup
