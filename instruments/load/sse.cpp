#include "instruments/load/sse.hpp"

namespace campaign::load {

void SseParser::feed(std::string_view bytes, Stamp at, SseSink& sink) {
    last_at_ = at;
    while (!bytes.empty() && !overflowed_ && !stopped_) {
        if (after_cr_) {
            after_cr_ = false;
            if (bytes.front() == '\n') {
                bytes.remove_prefix(1);
                continue;
            }
        }
        const std::size_t end = bytes.find_first_of("\r\n");
        const std::string_view part = bytes.substr(0, end);
        if (partial_.size() + part.size() + data_.size() > max_event_bytes) {
            overflowed_ = true;
            return;
        }
        if (end == std::string_view::npos) {
            partial_.append(part);
            return;
        }
        after_cr_ = bytes[end] == '\r';
        bytes.remove_prefix(end + 1);
        if (partial_.empty()) {
            line(part, at, sink);
        } else {
            partial_.append(part);
            line(partial_, at, sink);
            partial_.clear();
        }
    }
}

void SseParser::finish(SseSink& sink) {
    if (overflowed_ || stopped_) return;
    if (!partial_.empty()) line(partial_, last_at_, sink);
    partial_.clear();
    dispatch(sink);
}

void SseParser::line(std::string_view text, Stamp at, SseSink& sink) {
    constexpr std::string_view bom = "\xef\xbb\xbf";
    if (first_line_ && text.starts_with(bom)) text.remove_prefix(bom.size());
    first_line_ = false;
    if (text.empty()) {
        dispatch(sink);
        return;
    }
    if (text.front() == ':') {
        ++comments_;
        return;
    }
    const std::size_t colon = text.find(':');
    if (text.substr(0, colon) != "data") return;   // event, id, retry and unknown fields say nothing about a completion
    std::string_view value = colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (have_data_) data_.push_back('\n');
    data_.append(value);
    have_data_ = true;
    data_at_ = at;
}

void SseParser::dispatch(SseSink& sink) {
    if (have_data_ && !stopped_) stopped_ = !sink.event(data_, data_at_);
    data_.clear();
    have_data_ = false;
}

}   // namespace campaign::load
