#include "instruments/load/http_response.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.hpp"

namespace campaign::load {
namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_word(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

bool has_word(std::string_view list, std::string_view word) {
    while (!list.empty()) {
        const std::size_t comma = list.find(',');
        if (same_word(trim(list.substr(0, comma)), word)) return true;
        if (comma == std::string_view::npos) return false;
        list.remove_prefix(comma + 1);
    }
    return false;
}

std::optional<std::uint64_t> number(std::string_view text, int base) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
    return value;
}

}   // namespace

struct ResponseParser::Inflater {
    Inflater() { ok = inflateInit2(&stream, 15 + 32) == Z_OK; }   // 32: gzip or zlib, by the header
    ~Inflater() { inflateEnd(&stream); }
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;

    z_stream stream{};
    bool ok = false;
    bool ended = false;
};

ResponseParser::ResponseParser() = default;
ResponseParser::~ResponseParser() = default;
ResponseParser::ResponseParser(ResponseParser&&) noexcept = default;
ResponseParser& ResponseParser::operator=(ResponseParser&&) noexcept = default;

void ResponseParser::fail(std::string fault, std::string detail) {
    if (!fault_.empty()) return;
    fault_ = std::move(fault);
    fault_detail_ = printable(detail, 300);
}

std::optional<std::string_view> ResponseParser::header(std::string_view name) const {
    for (const auto& [key, value] : headers_) {
        if (same_word(key, name)) return value;
    }
    return std::nullopt;
}

bool ResponseParser::reusable() const {
    return complete_ && keep_alive_ && !surplus_ && fault_.empty() && framing_ != Framing::close;
}

void ResponseParser::feed(std::string_view bytes, BodySink& sink) {
    while (!bytes.empty() && fault_.empty()) {
        if (complete_) {
            surplus_ = true;
            return;
        }
        if (status_ == 0) {
            read_head(bytes);
        } else if (framing_ == Framing::chunked) {
            read_chunked(bytes, sink);
        } else if (framing_ == Framing::length) {
            const std::size_t take = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
            deliver(bytes.substr(0, take), sink);
            bytes.remove_prefix(take);
            left_ -= take;
            complete_ = left_ == 0;
        } else {
            deliver(bytes, sink);
            return;
        }
    }
}

void ResponseParser::closed() {
    if (status_ != 0 && framing_ == Framing::close) complete_ = true;
}

void ResponseParser::read_head(std::string_view& bytes) {
    // The end may lie across two reads: look again at the last three bytes of what came before.
    const std::size_t known = head_.size();
    const std::size_t from = known < 3 ? 0 : known - 3;
    const std::size_t room = max_head_bytes - known;
    head_.append(bytes.substr(0, room));
    const std::size_t end = head_.find("\r\n\r\n", from);
    if (end == std::string::npos) {
        if (head_.size() >= max_head_bytes) fail("protocol_error", "the response head is larger than 64 KiB");
        bytes.remove_prefix(std::min(room, bytes.size()));
        return;
    }
    bytes.remove_prefix(end + 4 - known);
    const std::string head = head_.substr(0, end);
    head_.clear();
    if (!parse_head(head)) {
        fail("protocol_error", "not an HTTP/1.1 response: " + head.substr(0, 80));
        return;
    }
    if (status_ >= 100 && status_ < 200) {   // interim answers are followed by the real one
        status_ = 0;
        headers_.clear();
        return;
    }
    choose_framing();
}

bool ResponseParser::parse_head(std::string_view head) {
    const std::size_t first = head.find("\r\n");
    const std::string_view start = head.substr(0, first);
    if (!start.starts_with("HTTP/1.") || start.size() < 12 || start[8] != ' ') return false;
    const auto status = number(start.substr(9, 3), 10);
    if (!status || *status < 100 || *status > 599) return false;
    keep_alive_ = start[7] != '0';
    head = first == std::string_view::npos ? std::string_view{} : head.substr(first + 2);
    while (!head.empty()) {
        const std::size_t end = head.find("\r\n");
        const std::string_view field = head.substr(0, end);
        head = end == std::string_view::npos ? std::string_view{} : head.substr(end + 2);
        const std::size_t colon = field.find(':');
        if (colon == std::string_view::npos || colon == 0) return false;
        headers_.emplace_back(std::string(field.substr(0, colon)), std::string(trim(field.substr(colon + 1))));
    }
    status_ = static_cast<int>(*status);
    return true;
}

void ResponseParser::choose_framing() {
    if (const auto connection = header("connection")) {
        if (has_word(*connection, "close")) keep_alive_ = false;
        if (has_word(*connection, "keep-alive")) keep_alive_ = true;
    }
    if (const auto encoding = header("content-encoding");
        encoding && !same_word(*encoding, "identity") && !encoding->empty()) {
        if (!same_word(*encoding, "gzip") && !same_word(*encoding, "x-gzip") && !same_word(*encoding, "deflate")) {
            fail("unsupported_content_encoding", "Content-Encoding: " + std::string(*encoding));
            return;
        }
        inflater_ = std::make_unique<Inflater>();
    }
    if (status_ == 204 || status_ == 304) {
        complete_ = true;
    } else if (const auto transfer = header("transfer-encoding")) {
        framing_ = has_word(*transfer, "chunked") ? Framing::chunked : Framing::close;
    } else if (const auto length = header("content-length")) {
        const auto bytes = number(*length, 10);
        if (!bytes) {
            fail("protocol_error", "Content-Length: " + std::string(*length));
            return;
        }
        framing_ = Framing::length;
        left_ = *bytes;
        complete_ = left_ == 0;
    } else {
        framing_ = Framing::close;
    }
}

bool ResponseParser::read_line(std::string_view& bytes) {
    const std::size_t end = bytes.find('\n');
    line_.append(bytes.substr(0, end));
    if (line_.size() > 8192) {
        fail("protocol_error", "a chunk line is longer than 8 KiB");
        return false;
    }
    if (end == std::string_view::npos) {
        bytes = {};
        return false;
    }
    bytes.remove_prefix(end + 1);
    if (line_.ends_with('\r')) line_.pop_back();
    return true;
}

void ResponseParser::read_chunked(std::string_view& bytes, BodySink& sink) {
    if (chunk_ == Chunk::data) {
        const std::size_t take = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
        deliver(bytes.substr(0, take), sink);
        bytes.remove_prefix(take);
        left_ -= take;
        if (left_ == 0) chunk_ = Chunk::data_end;
        return;
    }
    if (!read_line(bytes)) return;
    const std::string line = std::exchange(line_, {});
    if (chunk_ == Chunk::size) {
        const auto size = number(trim(std::string_view{line}.substr(0, line.find(';'))), 16);
        if (!size) {
            fail("protocol_error", "chunk size: " + line.substr(0, 40));
            return;
        }
        left_ = *size;
        chunk_ = left_ == 0 ? Chunk::trailer : Chunk::data;
    } else if (chunk_ == Chunk::data_end) {
        if (!line.empty()) fail("protocol_error", "a chunk is longer than its size says");
        chunk_ = Chunk::size;
    } else if (line.empty()) {
        complete_ = true;
    }
}

void ResponseParser::deliver(std::string_view bytes, BodySink& sink) {
    if (bytes.empty()) return;
    if (!inflater_) {
        sink.body(bytes);
        return;
    }
    if (inflater_->ended) return;
    std::array<char, 32768> plain;   // uninitialised on purpose: inflate fills it
    z_stream& stream = inflater_->stream;
    std::string input{bytes};
    stream.next_in = reinterpret_cast<Bytef*>(input.data());
    stream.avail_in = static_cast<uInt>(input.size());
    while (inflater_->ok) {
        stream.next_out = reinterpret_cast<Bytef*>(plain.data());
        stream.avail_out = static_cast<uInt>(plain.size());
        const int result = inflate(&stream, Z_SYNC_FLUSH);
        const std::size_t made = plain.size() - stream.avail_out;
        if (made > 0) sink.body({plain.data(), made});
        if (result == Z_STREAM_END) {
            inflater_->ended = true;
            return;
        }
        if (result == Z_BUF_ERROR || (result == Z_OK && stream.avail_in == 0 && stream.avail_out > 0)) return;
        if (result != Z_OK) break;
    }
    fail("protocol_error", "the compressed body is damaged");
}

}   // namespace campaign::load
