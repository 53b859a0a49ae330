#pragma once
// One HTTP/1.1 response (RFC 9112), fed in any split: status, headers, and the body by chunks, length or close.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace campaign::load {

class BodySink {
public:
    virtual ~BodySink() = default;
    virtual void body(std::string_view bytes) = 0;
};

class ResponseParser {
public:
    static constexpr std::size_t max_head_bytes = 64U << 10U;

    ResponseParser();
    ~ResponseParser();
    ResponseParser(ResponseParser&&) noexcept;
    ResponseParser& operator=(ResponseParser&&) noexcept;

    /// Body bytes go to the sink as they come, gzip and deflate undone. Bytes after the end are a fault of the peer: the
    /// connection is not reusable then.
    void feed(std::string_view bytes, BodySink& sink);
    /// The peer closed: completes a body that is delimited by the close, and nothing else.
    void closed();

    [[nodiscard]] bool has_head() const { return status_ != 0; }
    [[nodiscard]] int status() const { return status_; }
    /// By name without regard to case; the first one counts.
    [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
    [[nodiscard]] bool complete() const { return complete_; }
    /// The next request may use the connection: complete, and neither side asked to close.
    [[nodiscard]] bool reusable() const;
    /// "protocol_error" or "unsupported_content_encoding"; empty while all is well.
    [[nodiscard]] const std::string& fault() const { return fault_; }
    [[nodiscard]] const std::string& fault_detail() const { return fault_detail_; }

private:
    enum class Framing { none, chunked, length, close };
    enum class Chunk { size, data, data_end, trailer };
    struct Inflater;

    void read_head(std::string_view& bytes);
    bool parse_head(std::string_view head);
    void choose_framing();
    void read_chunked(std::string_view& bytes, BodySink& sink);
    bool read_line(std::string_view& bytes);
    void deliver(std::string_view bytes, BodySink& sink);
    void fail(std::string fault, std::string detail);

    std::string head_;
    std::string line_;
    std::vector<std::pair<std::string, std::string>> headers_;
    std::unique_ptr<Inflater> inflater_;
    int status_ = 0;
    Framing framing_ = Framing::none;
    Chunk chunk_ = Chunk::size;
    std::uint64_t left_ = 0;
    bool keep_alive_ = true;
    bool complete_ = false;
    bool surplus_ = false;
    std::string fault_;
    std::string fault_detail_;
};

}   // namespace campaign::load
