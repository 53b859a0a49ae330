// How a session comes up: options, key exchange, host key, keys.

#include <fcntl.h>

#include <algorithm>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

#include "adapters/ssh/known_hosts.hpp"
#include "adapters/ssh/session.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

namespace campaign::ssh {

namespace asio = boost::asio;

namespace {

constexpr std::size_t largest_known_hosts = 8u << 20;
constexpr std::chrono::seconds login_limit{20};

// The AES-GCM ciphers move twice the bytes of libssh's default; curve25519 and nistp256 cost a millisecond, group 16 twelve.
constexpr const char* ciphers =
    "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes256-ctr,aes192-ctr,aes128-ctr";
constexpr const char* exchanges =
    "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,"
    "diffie-hellman-group16-sha512,diffie-hellman-group-exchange-sha256,diffie-hellman-group14-sha256";

/// Key algorithms to offer: those of the keys we know first, so that a host with several keys shows the known one.
std::string key_algorithms(const std::vector<std::string>& known_types) {
    std::vector<std::string> order;
    const auto add = [&](const std::string& type) {
        const std::vector<std::string> names =
            type == "ssh-rsa" ? std::vector<std::string>{"rsa-sha2-512", "rsa-sha2-256"} : std::vector<std::string>{type};
        for (const std::string& name : names) {
            if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
        }
    };
    const std::vector<std::string> all = {"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
                                          "ssh-rsa"};
    for (const std::string& type : known_types) {
        if (std::find(all.begin(), all.end(), type) != all.end()) add(type);
    }
    for (const std::string& type : all) add(type);
    std::string list;
    for (const std::string& name : order) list += (list.empty() ? "" : ",") + name;
    return list;
}

std::vector<KnownHostsFile> read_known_hosts(const HostConfig& config) {
    std::vector<KnownHostsFile> files;
    for (const std::string& path : config.known_hosts) {
        const Result<std::string> text = read_text(path, largest_known_hosts);
        files.push_back({path, text ? *text : std::string{}});
    }
    return files;
}

std::string name_of(const HostConfig& config) {
    return config.host_key_name.empty() ? known_name(config.hostname, config.port) : known_name(config.host_key_name, 22);
}

/// Frees what libssh allocated.
template <class T, void (*Free)(T*)>
struct Freed {
    T* pointer = nullptr;
    Freed() = default;
    Freed(const Freed&) = delete;
    Freed& operator=(const Freed&) = delete;
    ~Freed() {
        if (pointer != nullptr) Free(pointer);
    }
};
using Key = Freed<ssh_key_struct, ssh_key_free>;

void free_chars(char* text) {
    ssh_string_free_char(text);
}
using Chars = Freed<char, free_chars>;

std::string fingerprint_of(ssh_key key) {
    unsigned char* hash = nullptr;
    std::size_t size = 0;
    if (ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &size) != 0) return "(unknown)";
    Chars text;
    text.pointer = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size);
    ssh_clean_pubkey_hash(&hash);
    return text.pointer == nullptr ? "(unknown)" : text.pointer;
}

/// Never gives a passphrase; says that one was wanted.
int no_passphrase(const char*, char*, std::size_t, int, int, void* wanted) {
    *static_cast<bool*>(wanted) = true;
    return -1;
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
}

std::string methods_text(int methods) {
    std::vector<std::string> names;
    if ((methods & SSH_AUTH_METHOD_PUBLICKEY) != 0) names.emplace_back("publickey");
    if ((methods & SSH_AUTH_METHOD_PASSWORD) != 0) names.emplace_back("password");
    if ((methods & SSH_AUTH_METHOD_INTERACTIVE) != 0) names.emplace_back("keyboard-interactive");
    if ((methods & SSH_AUTH_METHOD_HOSTBASED) != 0) names.emplace_back("hostbased");
    if ((methods & SSH_AUTH_METHOD_GSSAPI_MIC) != 0) names.emplace_back("gssapi");
    return names.empty() ? "nothing" : joined(names);
}

}   // namespace

Result<void> Session::set_options(const HostConfig& config, const std::vector<std::string>& known_types, int socket) {
    const std::string algorithms = key_algorithms(known_types);
    const bool aliased = !config.host_key_name.empty();
    const std::string& host = aliased ? config.host_key_name : config.hostname;
    int port = aliased ? 22 : config.port;   // the descriptor is connected: this is for the look-up of the key only
    int no = 0;
    const bool good = ssh_options_set(raw_, SSH_OPTIONS_PROCESS_CONFIG, &no) == 0 &&
                      ssh_options_set(raw_, SSH_OPTIONS_HOST, host.c_str()) == 0 &&
                      ssh_options_set(raw_, SSH_OPTIONS_PORT, &port) == 0 &&
                      ssh_options_set(raw_, SSH_OPTIONS_USER, config.user.c_str()) == 0 &&
                      ssh_options_set(raw_, SSH_OPTIONS_FD, &socket) == 0 &&
                      ssh_options_set(raw_, SSH_OPTIONS_KNOWNHOSTS, "/dev/null") == 0 &&
                      ssh_options_set(raw_, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null") == 0 &&
                      ssh_options_set(raw_, SSH_OPTIONS_CIPHERS_C_S, ciphers) == 0 &&
                      ssh_options_set(raw_, SSH_OPTIONS_CIPHERS_S_C, ciphers) == 0 &&
                      ssh_options_set(raw_, SSH_OPTIONS_KEY_EXCHANGE, exchanges) == 0 &&
                      ssh_options_set(raw_, SSH_OPTIONS_HOSTKEYS, algorithms.c_str()) == 0 &&
                      (!config.agent || ssh_options_set(raw_, SSH_OPTIONS_IDENTITY_AGENT, config.agent->c_str()) == 0);
    if (!good) return failure(ErrorKind::usage, "setting up the connection");
    ssh_set_blocking(raw_, 0);
    ssh_set_counters(raw_, &counter_, nullptr);
    return {};
}

Async<Result<void>> Session::open(Fd connected, HostConfig config) {
    const std::shared_ptr<Session> self = shared_from_this();
    raw_ = ssh_new();
    if (raw_ == nullptr) co_return Error{ErrorKind::io, host_ + ": no memory for a connection", "", "", ""};
    const int watched = ::fcntl(connected.get(), F_DUPFD_CLOEXEC, 3);
    if (watched < 0) co_return Error{ErrorKind::io, host_ + ": no descriptor left for a connection", "", "", ""};
    fd_.assign(watched);
    const std::vector<KnownHostsFile> files = read_known_hosts(config);
    const TrustVerdict before = judge(files, name_of(config), "", "");
    if (const auto set = set_options(config, before.known_types, connected.get()); !set) co_return set.error();
    static_cast<void>(connected.release());   // libssh's from here on
    const MonoTime deadline = clock_.mono() + std::chrono::seconds{config.connect_timeout_s};
    const std::string phase = "the key exchange";
    const Step step = [this] { return ssh_connect(raw_); };
    const Result<int> exchanged = co_await repeat(step, SSH_AGAIN, deadline, phase);
    if (!exchanged) co_return exchanged.error();
    if (*exchanged != SSH_OK) {
        Error error = failure(ErrorKind::unreachable, phase);
        error.next = "see that an sshd answers there, and whether it refuses new connections (MaxStartups)";
        co_return error;
    }
    if (const auto checked = check_host_key(config); !checked) co_return checked.error();
    const Result<void> logged_in = co_await log_in(config);
    if (!logged_in) co_return logged_in.error();

    event_ = ssh_event_new();
    if (event_ == nullptr || ssh_event_add_session(event_, raw_) != SSH_OK) {
        co_return failure(ErrorKind::io, "watching the connection");
    }
    open_ = true;
    watched_bytes_ = counter_.in_bytes;
    after();
    watch();
    co_return Result<void>{};
}

Result<void> Session::check_host_key(const HostConfig& config) {
    Key key;
    if (ssh_get_server_publickey(raw_, &key.pointer) != SSH_OK) return failure(ErrorKind::protocol, "reading the host key");
    Chars base64;
    if (ssh_pki_export_pubkey_base64(key.pointer, &base64.pointer) != SSH_OK) {
        return failure(ErrorKind::protocol, "reading the host key");
    }
    const std::string type = ssh_key_type_to_char(ssh_key_type(key.pointer));
    const std::string print = fingerprint_of(key.pointer);
    const std::string name = name_of(config);
    const std::vector<KnownHostsFile> files = read_known_hosts(config);
    const TrustVerdict verdict = judge(files, name, type, base64.pointer);
    const std::string shown = "it shows " + type + " " + print + " for " + printable(name, 200);
    const std::string where =
        verdict.line > 0 ? files[verdict.file].path + " line " + std::to_string(verdict.line) : joined(config.known_hosts);
    const std::string scan =
        "compare the fingerprint with the host's own (ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub there); if it is "
        "the same: ssh-keyscan -p " +
        std::to_string(config.port) + " " + config.hostname + " >> " +
        (config.known_hosts.empty() ? "~/.ssh/known_hosts" : config.known_hosts.front());
    const auto refuse = [&](std::string what, std::string why, std::string next) {
        return Error{ErrorKind::identity, std::move(what), std::move(why), shown + "; looked in " + where, std::move(next)};
    };
    switch (verdict.trust) {
        case Trust::unknown:
            return refuse("the host key of " + host_ + " is not known", "no line of the known_hosts files is about it",
                          scan);
        case Trust::changed:
            return refuse("THE HOST KEY OF " + host_ + " HAS CHANGED: it may be another machine",
                          "the known key is another one", "find out why before anything else; nothing was sent to it");
        case Trust::other_type:
            return refuse("the host key of " + host_ + " is of another kind than the known one",
                          "only keys of type " + joined(verdict.known_types) + " are known", scan);
        case Trust::revoked:
            return refuse("the host key of " + host_ + " is REVOKED", "a @revoked line names it",
                          "do not trust this machine until its administrator has explained it");
        case Trust::certificate:
            return refuse("host certificates are not supported", "a @cert-authority line covers " + host_,
                          "give campaignd a known_hosts file of its own, with the host's plain key");
        case Trust::known: break;
    }
    // libssh must come to the same end, by its own reading of the same file.
    if (ssh_options_set(raw_, SSH_OPTIONS_KNOWNHOSTS, files[verdict.file].path.c_str()) != 0 ||
        ssh_session_is_known_server(raw_) != SSH_KNOWN_HOSTS_OK) {
        return refuse("the host key of " + host_ + " is in doubt", "two readings of the same line disagree",
                      "write the line as ssh-keyscan does: NAME TYPE KEY");
    }
    return {};
}

Async<bool> Session::agent_answers(std::string path) {
    // libssh waits for an agent without limit, so it is asked something first: SSH_AGENTC_REQUEST_IDENTITIES.
    struct Question {
        explicit Question(const asio::any_io_executor& executor) : socket{executor} {}
        asio::local::stream_protocol::socket socket;
        char bytes[5] = {0, 0, 0, 1, 11};
        std::optional<bool> answered;
    };
    if (path.size() > 100) co_return false;
    const auto question = std::make_shared<Question>(executor_);
    const std::shared_ptr<Session> self = shared_from_this();
    const asio::local::stream_protocol::endpoint endpoint{path};
    question->socket.async_connect(endpoint, [question, self](boost::system::error_code error) {
        const auto fail = [&] {
            question->answered = false;
            self->changed_.notify();
        };
        if (error) return fail();
        asio::async_write(question->socket, asio::buffer(question->bytes),
                          [question, self](boost::system::error_code failed, std::size_t) {
                              question->socket.async_read_some(
                                  asio::buffer(question->bytes),
                                  [question, self, failed](boost::system::error_code bad, std::size_t) {
                                      question->answered = !failed && !bad;
                                      self->changed_.notify();
                                  });
                          });
    });
    const MonoTime deadline = clock_.mono() + std::chrono::seconds{2};
    while (!question->answered && clock_.mono() < deadline) co_await changed_.wait_until(deadline);
    boost::system::error_code ignored;
    question->socket.close(ignored);
    co_return question->answered.value_or(false);
}

Async<Result<void>> Session::log_in(const HostConfig& config) {
    const MonoTime deadline = clock_.mono() + login_limit;
    const std::string phase = "the login";
    const Step none = [this] { return ssh_userauth_none(raw_, nullptr); };
    const Result<int> asked = co_await repeat(none, SSH_AUTH_AGAIN, deadline, phase);
    if (!asked) co_return asked.error();
    if (*asked == SSH_AUTH_SUCCESS) co_return Result<void>{};
    if (*asked == SSH_AUTH_ERROR) co_return failure(ErrorKind::unreachable, phase);
    const int methods = ssh_userauth_list(raw_, nullptr);

    std::vector<std::string> tried;
    std::vector<std::string> unusable;
    for (const std::string& path : config.identity_files) {
        Key key;
        bool wanted = false;
        const int loaded = ssh_pki_import_privkey_file(path.c_str(), nullptr, no_passphrase, &wanted, &key.pointer);
        if (loaded == SSH_EOF) continue;   // there is no such file
        if (loaded != SSH_OK) {
            unusable.push_back(path + (wanted ? " (protected by a passphrase)" : " (cannot be read as a private key)"));
            continue;
        }
        tried.push_back(fingerprint_of(key.pointer));
        const ssh_key raw_key = key.pointer;
        const Step step = [this, raw_key] { return ssh_userauth_publickey(raw_, nullptr, raw_key); };
        const Result<int> answer = co_await repeat(step, SSH_AUTH_AGAIN, deadline, phase);
        if (!answer) co_return answer.error();
        if (*answer == SSH_AUTH_SUCCESS) co_return Result<void>{};
        if (*answer == SSH_AUTH_ERROR) break;   // "too many authentication failures", or the link went
    }
    bool agent_asked = false;
    if (config.agent && ssh_is_connected(raw_) != 0) {
        const bool there = co_await agent_answers(*config.agent);
        if (!there) {
            unusable.push_back("the agent at " + *config.agent + " (no answer)");
        } else {
            agent_asked = true;
            const Step step = [this] { return ssh_userauth_agent(raw_, nullptr); };
            const Result<int> answer = co_await repeat(step, SSH_AUTH_AGAIN, deadline, phase);
            if (!answer) co_return answer.error();
            if (*answer == SSH_AUTH_SUCCESS) co_return Result<void>{};
        }
    }
    std::string why = tried.empty() ? "no usable key was found" : "key " + joined(tried) + " was not accepted";
    if (agent_asked) why += tried.empty() ? "; none of the agent's keys was accepted" : ", nor one of the agent's keys";
    std::string next = "put the public key into " + config.user +
                       "'s authorized_keys there, or name the right key in the plan or "
                       "by IdentityFile";
    if (!unusable.empty()) next = "a daemon cannot type a passphrase: use an agent, or a key without one";
    co_return Error{ErrorKind::refused,
                    host_ + " refused " + (tried.empty() ? "the login" : "key " + tried.front()) + " for user " +
                        printable(config.user, 60) + "; server allows: " + methods_text(methods),
                    why, unusable.empty() ? std::string{} : "not usable: " + joined(unusable), next};
}

}   // namespace campaign::ssh
