#include "instruments/load/http_response.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

namespace campaign::load {
namespace {

struct Body final : BodySink {
    std::string bytes;
    void body(std::string_view more) override { bytes += more; }
};

struct Parsed {
    ResponseParser parser;
    Body body;
};

Parsed parse(std::string_view text, std::size_t step) {
    Parsed out;
    for (std::size_t i = 0; i < text.size(); i += step) out.parser.feed(text.substr(i, step), out.body);
    return out;
}

std::string gzip(std::string text) {
    z_stream stream{};
    EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string out(1024 + text.size(), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(text.data());
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

std::string with_length(const std::string& headers, const std::string& body) {
    return "HTTP/1.1 200 OK\r\n" + headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

struct Case {
    const char* name;
    std::string text;
    std::string body;
    bool complete;
    bool reusable;
};

TEST(HttpResponse, ReadsEachFramingInAnySplit) {
    const Case table[] = {
        {"length", with_length("", "hello"), "hello", true, true},
        {"no body", with_length("", ""), "", true, true},
        {"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
         "abc0123456789", true, true},
        {"chunked with a trailer", "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\n", "a",
         true, true},
        {"chunks win over a length",
         "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", "a", true, true},
        {"chunked, cut short", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "ab", false, false},
        {"until the close", "HTTP/1.1 200 OK\r\n\r\nabc", "abc", false, false},
        {"the server wants to close", with_length("Connection: close\r\n", "a"), "a", true, false},
        {"HTTP/1.0 closes", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", "a", true, false},
        {"interim answers first", "HTTP/1.1 100 Continue\r\n\r\n" + with_length("", "x"), "x", true, true},
        {"bytes after the end", with_length("", "a") + "surplus", "a", true, false},
        {"gzip nobody asked for", with_length("Content-Encoding: gzip\r\n", gzip("data: zipped\n\n")), "data: zipped\n\n",
         true, true},
    };
    for (const Case& each : table) {
        for (std::size_t step = 1; step <= each.text.size(); ++step) {
            const Parsed got = parse(each.text, step);
            EXPECT_EQ(got.parser.fault(), "") << each.name << ", " << step << " bytes a read";
            EXPECT_EQ(got.body.bytes, each.body) << each.name << ", " << step << " bytes a read";
            EXPECT_EQ(got.parser.complete(), each.complete) << each.name << ", " << step << " bytes a read";
            EXPECT_EQ(got.parser.reusable(), each.reusable) << each.name << ", " << step << " bytes a read";
        }
    }
}

TEST(HttpResponse, TheCloseCompletesOnlyWhatItDelimits) {
    Parsed open = parse("HTTP/1.1 200 OK\r\n\r\nabc", 100);
    open.parser.closed();
    EXPECT_TRUE(open.parser.complete());
    Parsed cut = parse("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", 100);
    cut.parser.closed();
    EXPECT_FALSE(cut.parser.complete());
}

TEST(HttpResponse, HeaderNamesHaveNoCase) {
    const Parsed got = parse(with_length("CONTENT-type:  text/plain \r\n", ""), 7);
    EXPECT_EQ(got.parser.header("content-type"), "text/plain");
    EXPECT_FALSE(got.parser.header("x-absent"));
}

TEST(HttpResponse, FaultsOfThePeerAreNamed) {
    const std::pair<std::string, std::string> table[] = {
        {"SSH-2.0-OpenSSH\r\n\r\n", "protocol_error"},
        {"HTTP/1.1 abc\r\n\r\n", "protocol_error"},
        {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "protocol_error"},
        {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "protocol_error"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "protocol_error"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", "protocol_error"},
        {"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n", "unsupported_content_encoding"},
        {with_length("Content-Encoding: gzip\r\n", "this is no gzip"), "protocol_error"},
        {"HTTP/1.1 200 OK\r\nX: " + std::string(70000, 'x'), "protocol_error"},
    };
    for (const auto& [text, fault] : table) EXPECT_EQ(parse(text, 1000).parser.fault(), fault) << text.substr(0, 60);
}

}   // namespace
}   // namespace campaign::load
