#include <curl/curl.h>

#include <algorithm>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cctype>

#include "adapters/http/http.hpp"
#include "base/text.hpp"

namespace campaign::http {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t longest_headers = 256u << 10;

/// One request on its way. Owned by the coroutine that waits for it; libcurl holds a pointer while it is in the multi
/// handle.
struct Transfer {
    Request request;
    Response response;
    CURL* easy = nullptr;
    curl_slist* headers = nullptr;
    std::size_t header_bytes = 0;
    bool body_too_long = false;
    bool headers_too_long = false;
    bool done = false;
    CURLcode result = CURLE_OK;
    char error[CURL_ERROR_SIZE] = {};
    asio::steady_timer finished;   ///< never fires: cancelled when the transfer has ended

    explicit Transfer(const asio::any_io_executor& executor) : finished{executor, asio::steady_timer::time_point::max()} {}
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;
    ~Transfer() {
        if (easy != nullptr) curl_easy_cleanup(easy);
        curl_slist_free_all(headers);
    }
};

std::size_t on_body(char* data, std::size_t, std::size_t size, void* user) {
    auto& transfer = *static_cast<Transfer*>(user);
    if (size > transfer.request.keep_body - transfer.response.body.size()) {
        transfer.body_too_long = true;
        return CURL_WRITEFUNC_ERROR;
    }
    transfer.response.body.append(data, size);
    return size;
}

std::size_t on_header(char* data, std::size_t, std::size_t size, void* user) {
    auto& transfer = *static_cast<Transfer*>(user);
    transfer.header_bytes += size;
    if (transfer.header_bytes > longest_headers) {
        transfer.headers_too_long = true;
        return 0;
    }
    const std::string_view line{data, size};
    if (line.starts_with("HTTP/")) transfer.response.headers.clear();   // a 100-continue came before
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) return size;
    std::string name{line.substr(0, colon)};
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    transfer.response.headers[name] = std::string{trim(line.substr(colon + 1))};
    return size;
}

class CurlClient final : public Client {
public:
    explicit CurlClient(asio::any_io_executor executor) : executor_{executor}, timer_{executor} {
        static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);   // once per process, as libcurl demands
        multi_ = ready == CURLE_OK ? curl_multi_init() : nullptr;
        if (multi_ == nullptr) return;
        curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlClient::on_socket);
        curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
        curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlClient::on_timer);
        curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
    }
    CurlClient(const CurlClient&) = delete;
    CurlClient& operator=(const CurlClient&) = delete;
    ~CurlClient() override {
        *alive_ = false;
        timer_.cancel();
        if (multi_ != nullptr) curl_multi_cleanup(multi_);
        for (auto& [fd, watch] : watches_) watch->descriptor.release();   // the descriptors are libcurl's own
    }

    Async<Result<Response>> send(Request request) override {
        Transfer transfer{executor_};
        transfer.request = std::move(request);
        if (auto made = prepare(transfer); !made) co_return made.error();
        const auto begun = std::chrono::steady_clock::now();   // a measurement to report, nothing depends on it
        if (curl_multi_add_handle(multi_, transfer.easy) != CURLM_OK) {
            co_return Error{ErrorKind::bug, "libcurl did not take the request", "", "", ""};
        }
        const Removal removal{multi_, transfer.easy};
        error_code ignored;
        while (!transfer.done) {
            co_await transfer.finished.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
            const asio::cancellation_state cancellation = co_await asio::this_coro::cancellation_state;
            if (cancellation.cancelled() != asio::cancellation_type::none && !transfer.done) {
                throw boost::system::system_error{asio::error::operation_aborted};
            }
        }
        transfer.response.took = std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - begun);
        co_return outcome(transfer);
    }

private:
    /// Takes the handle out of the multi when the coroutine leaves, in whatever way: that closes its connection.
    struct Removal {
        CURLM* multi;
        CURL* easy;
        Removal(CURLM* m, CURL* e) : multi{m}, easy{e} {}
        Removal(const Removal&) = delete;
        Removal& operator=(const Removal&) = delete;
        ~Removal() { curl_multi_remove_handle(multi, easy); }
    };

    /// A socket of libcurl's as Asio sees it. libcurl closes it; we only wait on it.
    struct Watch {
        asio::posix::stream_descriptor descriptor;
        int wanted = 0;   ///< CURL_POLL_IN, OUT, INOUT
        bool reading = false;
        bool writing = false;
        Watch(const asio::any_io_executor& executor, int fd) : descriptor{executor, fd} {}
    };

    Result<void> prepare(Transfer& transfer) {
        const Request& request = transfer.request;
        if (multi_ == nullptr) return Error{ErrorKind::unavailable, "libcurl could not be initialised", "", "", ""};
        for (const std::string& header : request.headers) {
            if (header.find_first_of("\r\n") != std::string::npos || header.find(':') == std::string::npos) {
                return Error{ErrorKind::usage, "a header of the request is malformed", "", "", ""};
            }
        }
        transfer.easy = curl_easy_init();
        if (transfer.easy == nullptr) return Error{ErrorKind::io, "no memory for a request", "", "", ""};
        const auto set = [easy = transfer.easy](CURLoption option, auto value) { curl_easy_setopt(easy, option, value); };
        set(CURLOPT_PRIVATE, &transfer);
        set(CURLOPT_URL, request.url.c_str());
        set(CURLOPT_PROTOCOLS_STR, "http,https");
        set(CURLOPT_FOLLOWLOCATION, 0L);
        set(CURLOPT_NOPROXY, "*");
        set(CURLOPT_NOSIGNAL, 1L);
        set(CURLOPT_ERRORBUFFER, transfer.error);
        set(CURLOPT_USERAGENT, "campaignd");
        set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
        // A connection that was kept open may be dead without our knowing: every request has its own, so that "nothing was
        // sent" can be told from "sent".
        set(CURLOPT_FRESH_CONNECT, 1L);
        set(CURLOPT_FORBID_REUSE, 1L);
        set(CURLOPT_TCP_KEEPALIVE, 1L);
        set(CURLOPT_TCP_KEEPIDLE, 30L);
        set(CURLOPT_TCP_KEEPINTVL, 15L);
        set(CURLOPT_CONNECTTIMEOUT_MS, std::max(1L, static_cast<long>(request.connect_limit.count())));
        set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.total_limit.count()));
        set(CURLOPT_WRITEFUNCTION, &on_body);
        set(CURLOPT_WRITEDATA, &transfer);
        set(CURLOPT_HEADERFUNCTION, &on_header);
        set(CURLOPT_HEADERDATA, &transfer);
        if (request.unix_socket) set(CURLOPT_UNIX_SOCKET_PATH, request.unix_socket->c_str());
        bool has_type = false;
        const auto append = [&](const char* header) {
            curl_slist* longer = curl_slist_append(transfer.headers, header);
            if (longer != nullptr) transfer.headers = longer;
        };
        for (const std::string& header : request.headers) {
            append(header.c_str());
            std::string name = header.substr(0, header.find(':'));
            std::transform(name.begin(), name.end(), name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
            has_type = has_type || name == "content-type";
        }
        append("Expect:");   // no 100-continue round trip
        if (request.method == "HEAD") {
            set(CURLOPT_NOBODY, 1L);
        } else if (request.method == "GET" && !request.body) {
            set(CURLOPT_HTTPGET, 1L);
        } else {
            const std::string_view body = request.body ? std::string_view{*request.body} : std::string_view{};
            set(CURLOPT_POST, 1L);
            set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
            set(CURLOPT_POSTFIELDS, body.empty() ? "" : body.data());   // lives in the transfer
            set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
            if (!has_type) append("Content-Type:");   // without this libcurl claims that it is a form
        }
        set(CURLOPT_HTTPHEADER, transfer.headers);
        return {};
    }

    /// unreachable: no byte of the request went out. in_doubt: some did, and the answer is not whole.
    static Result<Response> outcome(Transfer& transfer) {
        const Request& request = transfer.request;
        const std::string what = request.method + " " + printable(request.url.substr(0, request.url.find('?')), 300);
        const std::string said = transfer.error[0] != '\0' ? transfer.error : curl_easy_strerror(transfer.result);
        if (transfer.result == CURLE_OK) {
            long status = 0;
            curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &status);
            transfer.response.status = static_cast<int>(status);
            return std::move(transfer.response);
        }
        if (transfer.body_too_long) {
            return Error{ErrorKind::protocol, what + " gave an answer of more than " + format_bytes(request.keep_body), "",
                         "", ""};
        }
        if (transfer.headers_too_long) return Error{ErrorKind::protocol, what + " gave endless headers", "", "", ""};
        switch (transfer.result) {
            case CURLE_URL_MALFORMAT:
            case CURLE_UNSUPPORTED_PROTOCOL:
                return Error{ErrorKind::usage, what + " is no request that can be sent", said, "", ""};
            default: break;
        }
        long sent = 0;
        curl_easy_getinfo(transfer.easy, CURLINFO_REQUEST_SIZE, &sent);
        if (sent > 0) {
            const bool late = transfer.result == CURLE_OPERATION_TIMEDOUT;
            return Error{ErrorKind::in_doubt, what + " was sent and not wholly answered",
                         late ? "no answer within " + format_span(request.total_limit) : "the connection ended",
                         printable(said, 300), ""};
        }
        if (transfer.result == CURLE_OPERATION_TIMEDOUT) {
            return Error{ErrorKind::timed_out, what + " could not be sent in time", "", printable(said, 300), ""};
        }
        return Error{ErrorKind::unreachable, what + " found no server", "", printable(said, 300), ""};
    }

    static int on_socket(CURL*, curl_socket_t fd, int wanted, void* user, void*) {
        auto& self = *static_cast<CurlClient*>(user);
        if (wanted == CURL_POLL_REMOVE) {
            const auto found = self.watches_.find(fd);
            if (found != self.watches_.end()) {
                found->second->wanted = 0;
                found->second->descriptor.release();   // libcurl is about to close it
                self.watches_.erase(found);
            }
            return 0;
        }
        auto& watch = self.watches_[fd];
        if (!watch) watch = std::make_shared<Watch>(self.executor_, fd);
        watch->wanted = wanted;
        self.arm(fd, watch);
        return 0;
    }

    void arm(int fd, const std::shared_ptr<Watch>& watch) {
        if ((watch->wanted & CURL_POLL_IN) != 0 && !watch->reading) {
            watch->reading = true;
            wait(fd, watch, asio::posix::stream_descriptor::wait_read, CURL_CSELECT_IN);
        }
        if ((watch->wanted & CURL_POLL_OUT) != 0 && !watch->writing) {
            watch->writing = true;
            wait(fd, watch, asio::posix::stream_descriptor::wait_write, CURL_CSELECT_OUT);
        }
    }

    void wait(int fd, const std::shared_ptr<Watch>& watch, asio::posix::stream_descriptor::wait_type type, int event) {
        watch->descriptor.async_wait(type, [this, alive = alive_, fd, watch, event](const error_code& error) {
            (event == CURL_CSELECT_IN ? watch->reading : watch->writing) = false;
            if (!*alive || error == asio::error::operation_aborted) return;
            const auto current = watches_.find(fd);
            if (current == watches_.end() || current->second != watch) return;   // removed, perhaps reused, meanwhile
            if ((watch->wanted & (event == CURL_CSELECT_IN ? CURL_POLL_IN : CURL_POLL_OUT)) == 0) return;
            act(fd, error ? CURL_CSELECT_ERR : event);
            const auto still = watches_.find(fd);
            if (still != watches_.end() && still->second == watch) arm(fd, watch);
        });
    }

    static int on_timer(CURLM*, long milliseconds, void* user) {
        auto& self = *static_cast<CurlClient*>(user);
        self.timer_.cancel();
        if (milliseconds < 0) return 0;
        self.timer_.expires_after(std::chrono::milliseconds{milliseconds});
        self.timer_.async_wait([&self, alive = self.alive_](const error_code& error) {
            if (!*alive || error) return;
            self.act(CURL_SOCKET_TIMEOUT, 0);
        });
        return 0;
    }

    void act(curl_socket_t fd, int event) {
        int running = 0;
        curl_multi_socket_action(multi_, fd, event, &running);
        int left = 0;
        while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
            if (message->msg != CURLMSG_DONE) continue;
            Transfer* transfer = nullptr;
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
            transfer->result = message->data.result;
            transfer->done = true;
            transfer->finished.cancel();
        }
    }

    asio::any_io_executor executor_;
    asio::steady_timer timer_;
    CURLM* multi_ = nullptr;
    std::map<curl_socket_t, std::shared_ptr<Watch>> watches_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);   // waits may outlive the client by one turn of the loop
};

}   // namespace

std::unique_ptr<Client> make_client(boost::asio::any_io_executor executor) {
    return std::make_unique<CurlClient>(std::move(executor));
}

}   // namespace campaign::http
