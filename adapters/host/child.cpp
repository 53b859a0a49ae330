#include "adapters/host/child.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "base/fd.hpp"

extern char** environ;

namespace campaign::host {

namespace asio = boost::asio;

namespace {

constexpr std::size_t most_buffered = 256u << 10;
constexpr std::size_t piece = 64u << 10;

Error failure(const std::string& program, int code) {
    const std::string why = std::generic_category().message(code);
    if (code == ENOENT)
        return Error{ErrorKind::not_found, "there is no program " + program, why, "", "install it, or correct PATH"};
    return Error{ErrorKind::io, "cannot start " + program, why, "", ""};
}

/// A pipe whose ends are closed in every child.
int make_pipe(Fd& reader, Fd& writer) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
    reader.reset(ends[0]);
    writer.reset(ends[1]);
    return 0;
}

/// What posix_spawn is told, freed at the end.
struct Plan {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    Plan() {
        posix_spawn_file_actions_init(&actions);
        posix_spawnattr_init(&attributes);
    }
    ~Plan() {
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
    }
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;
};

}   // namespace

Child::Child(const asio::any_io_executor& executor)
    : output_{executor}, errors_{executor}, input_{executor}, process_{executor} {}

Child::~Child() {
    // Collected if it has ended meanwhile; else it stays until this program ends, as any abandoned child does.
    if (pid_ > 0 && !exited_) ::waitpid(pid_, nullptr, WNOHANG);
}

Result<std::shared_ptr<Child>> Child::start(const asio::any_io_executor& executor, const std::vector<std::string>& argv,
                                            bool has_input) {
    Fd out_reader, out_writer, err_reader, err_writer, in_ours, in_theirs;
    int code = make_pipe(out_reader, out_writer);
    if (code == 0) code = make_pipe(err_reader, err_writer);
    if (code == 0 && has_input) {
        // A socket, not a pipe: writing to one whose reader is gone gives an error, not a signal.
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
            code = errno;
        } else {
            in_ours.reset(ends[0]);
            in_theirs.reset(ends[1]);
        }
    }
    if (code != 0) return failure(argv.front(), code);

    Plan plan;
    if (has_input) {
        posix_spawn_file_actions_adddup2(&plan.actions, in_theirs.get(), 0);
    } else {
        posix_spawn_file_actions_addopen(&plan.actions, 0, "/dev/null", O_RDONLY, 0);
    }
    posix_spawn_file_actions_adddup2(&plan.actions, out_writer.get(), 1);
    posix_spawn_file_actions_adddup2(&plan.actions, err_writer.get(), 2);
    posix_spawn_file_actions_addclosefrom_np(&plan.actions, 3);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&plan.attributes, &none);
    posix_spawnattr_setsigdefault(&plan.attributes, &all);
    posix_spawnattr_setpgroup(&plan.attributes, 0);
    posix_spawnattr_setflags(&plan.attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

    std::vector<char*> words;
    for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    pid_t pid = -1;
    code = posix_spawnp(&pid, words.front(), &plan.actions, &plan.attributes, words.data(), environ);
    if (code != 0) return failure(argv.front(), code);

    const std::shared_ptr<Child> child{new Child{executor}};
    child->pid_ = pid;
    child->output_.descriptor.assign(out_reader.release());
    child->errors_.descriptor.assign(err_reader.release());
    if (has_input) child->input_.assign(asio::local::stream_protocol{}, in_ours.release());
    const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (process >= 0) {
        child->process_.assign(process);
        child->watch_exit();
    }
    child->read(child->output_);
    child->read(child->errors_);
    return child;
}

void Child::read(Stream& stream) {
    if (stream.reading || stream.ended || stream.buffer.size() >= most_buffered) return;
    stream.reading = true;
    stream.descriptor.async_wait(
        asio::posix::stream_descriptor::wait_read, [weak = weak_from_this(), &stream](boost::system::error_code error) {
            const auto self = weak.lock();
            if (!self) return;
            stream.reading = false;
            if (error) return;
            const std::size_t before = stream.buffer.size();
            stream.buffer.resize(before + piece);
            const ssize_t got = ::read(stream.descriptor.native_handle(), stream.buffer.data() + before, piece);
            stream.buffer.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
            if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) stream.ended = true;
            self->read(stream);
            self->changed_.notify();
        });
}

std::string Child::take(Stream& stream) {
    std::string bytes = std::exchange(stream.buffer, std::string{});
    read(stream);
    return bytes;
}

void Child::watch_exit() {
    process_.async_wait(asio::posix::stream_descriptor::wait_read,
                        [weak = weak_from_this()](boost::system::error_code error) {
                            const auto self = weak.lock();
                            if (!self || error) return;
                            int status = 0;
                            if (::waitpid(self->pid_, &status, WNOHANG) != self->pid_) {
                                self->watch_exit();   // woken for nothing, as a reactor may
                                return;
                            }
                            self->exited_ = true;
                            if (WIFEXITED(status)) self->exit_status_ = WEXITSTATUS(status);
                            if (WIFSIGNALED(status)) self->signal_ = WTERMSIG(status);
                            self->changed_.notify();
                        });
}

void Child::write(std::string bytes) {
    if (!input_.is_open() || bytes.empty()) return;
    unwritten_ = std::move(bytes);
    writing_ = true;
    asio::async_write(input_, asio::buffer(unwritten_),
                      [self = shared_from_this()](boost::system::error_code error, std::size_t) {
                          self->writing_ = false;
                          self->unwritten_.clear();
                          if (error) self->close_input();
                          self->changed_.notify();
                      });
}

void Child::close_input() {
    boost::system::error_code ignored;
    input_.close(ignored);
}

void Child::terminate() const {
    if (pid_ > 0 && !exited_) ::kill(-pid_, SIGTERM);
}

void Child::close() {
    boost::system::error_code ignored;
    close_input();
    output_.descriptor.close(ignored);
    errors_.descriptor.close(ignored);
    output_.ended = errors_.ended = true;
}

}   // namespace campaign::host
