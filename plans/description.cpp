#include "plans/description.hpp"

namespace campaign::plans {
namespace {

using Words = std::string_view[];

constexpr Form any_text{"^[^\\u0000-\\u0008\\u000b-\\u001f]{0,1000}$", "text of at most 1000 characters"};
constexpr Form name{"^[a-z0-9][a-z0-9-]{0,39}$",
                    "small letters, digits and `-`, at most 40, beginning with a letter or digit"};
constexpr Form path{"^/[^\\u0000-\\u001f]{0,999}$", "an absolute path"};
constexpr Form local_path{"^[~/][^\\u0000-\\u001f]{0,999}$", "a path that begins with `/` or `~`"};
constexpr Form host_name{"^[A-Za-z0-9_\\[][A-Za-z0-9_.:\\]-]{0,254}$", "an alias of the ssh configuration or a host name"};
constexpr Form jump_path{"^[A-Za-z0-9_\\[][A-Za-z0-9_.:@,\\]\\[-]{0,254}$",
                         "an alias or [USER@]HOST[:PORT], as ProxyJump has it"};
constexpr Form user_name{"^[A-Za-z_][A-Za-z0-9_.-]{0,63}$", "a user name"};
constexpr Form unit_name{"^[A-Za-z0-9:_.@\\\\-]{1,240}[.]service$", "a systemd unit with its suffix: `NAME.service`"};
constexpr Form url{"^https?://([A-Za-z0-9_.-]+|\\[[0-9A-Fa-f:]+\\])(:[0-9]{1,5})?/?$",
                   "http://HOST:PORT or https://HOST:PORT, without user, password or path"};
constexpr Form window_form{"^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]( [A-Za-z][A-Za-z0-9_+/-]{0,60})?$",
                           "HH:MM-HH:MM with a time zone, as in \"22:00-06:00 Europe/Zurich\""};
constexpr Form probe_form{"^(off|within (100|[1-9][0-9]?) ?%)$", "`within 25%` or `off`"};
constexpr Form credential{"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}$", "the name of a credential"};
constexpr Form variable{"^[A-Za-z_][A-Za-z0-9_]{0,199}$", "a name of letters, digits and `_`"};
constexpr Form model_name{"^[^\\u0000-\\u0020][^\\u0000-\\u001f]{0,499}$", "a model's name"};

constexpr Words server_words{"auto", "vllm", "sglang", "llamacpp", "trtllm", "generic"};
constexpr Words restart_words{"never", "ask", "window", "allow"};
constexpr Words measure_words{"warm-up", "throughput", "decode-step"};
constexpr Words method_words{"torch-profile", "nsys", "macro"};
constexpr Words trace_words{"fetch", "excerpt", "leave"};

constexpr int million = 1'000'000;

constexpr Key host_keys[]{
    {.name = "ssh", .doc = "Alias of the ssh configuration, or a host name.", .form = &host_name},
    {.name = "local", .type = Type::boolean, .fallback = "false", .doc = "True for the daemon's own machine, without ssh."},
    {.name = "user", .doc = "Remote user; absent: as the ssh configuration says.", .form = &user_name},
    {.name = "port",
     .type = Type::integer,
     .doc = "Port of sshd; absent: as the ssh configuration says.",
     .least = 1,
     .most = 65535},
    {.name = "key_file", .doc = "Path of the private key; never the key itself.", .form = &local_path},
    {.name = "jump",
     .doc = "Host to jump through: a key of `hosts`, an alias, or [USER@]HOST[:PORT] as ProxyJump has it.",
     .form = &jump_path},
    {.name = "known_hosts", .doc = "Path of the known_hosts file to check the host's key with.", .form = &local_path},
    {.name = "work_dir",
     .fallback = "/var/lib/campaignd-host",
     .doc = "Where our own files lie on the host.",
     .form = &path},
    {.name = "sudo", .type = Type::boolean, .fallback = "false", .doc = "Make changes through `sudo -n`."},
};
constexpr Choice host_choices[]{{"ssh", "local", true}};
constexpr Section host{"a host", host_keys, host_choices};

constexpr Key process_keys[]{
    {.name = "command",
     .type = Type::arguments,
     .required = true,
     .doc = "The server's command line, one argument an entry."},
    {.name = "environment",
     .type = Type::table,
     .doc = "Variables beside the minimal PATH, HOME and LANG. No secrets.",
     .form = &variable},
    {.name = "directory", .fallback = "/", .doc = "Working directory of the server.", .form = &path},
    {.name = "log", .required = true, .doc = "File that the server's output is appended to.", .form = &path},
};
constexpr Section process{"a process", process_keys, {}};

constexpr Key secret_keys[]{
    {.name = "file", .doc = "Path of a file that holds the secret; read when it is needed.", .form = &path},
    {.name = "credential", .doc = "Name of a systemd credential of campaignd.", .form = &credential},
};
constexpr Choice secret_choices[]{{"file", "credential", true}};
constexpr Section secret{"a reference to a secret", secret_keys, secret_choices};

constexpr Key service_keys[]{
    {.name = "host", .required = true, .doc = "The host that it runs on: a key of `hosts`.", .form = &name},
    {.name = "unit", .doc = "The systemd unit, with its suffix.", .form = &unit_name},
    {.name = "process",
     .type = Type::section,
     .doc = "A server started by its command line, where there is no systemd.",
     .section = &process},
    {.name = "url", .required = true, .doc = "The server's address as seen on its own host.", .form = &url},
    {.name = "server",
     .type = Type::word,
     .fallback = "auto",
     .doc = "Kind of server; auto finds it out.",
     .words = server_words},
    {.name = "model", .doc = "Served name that must be listed; absent: found out.", .form = &model_name},
    {.name = "api_key",
     .type = Type::section,
     .doc = "Where the API key is found; never the key itself.",
     .section = &secret},
    {.name = "profiler_dir", .doc = "Folder on the host for traces; absent: below work_dir.", .form = &path},
    {.name = "load_time", .type = Type::duration, .doc = "Your own estimate of one model load."},
};
constexpr Choice service_choices[]{{"unit", "process", true}};
constexpr Section service{"a service", service_keys, service_choices};

constexpr Key policy_keys[]{
    {.name = "restart",
     .type = Type::word,
     .fallback = "never",
     .doc = "May production be restarted? `ask` waits for an approval, `window` allows it in `window`.",
     .without = "without it no restart would be allowed",
     .words = restart_words},
    {.name = "window", .doc = "When restarts may happen, with a time zone.", .form = &window_form},
    {.name = "max_downtime",
     .type = Type::duration,
     .fallback = "0s",
     .doc = "How long production may be away, in all.",
     .without = "without it the limit is 0: no restart would be allowed"},
    {.name = "approval_expires",
     .type = Type::duration,
     .fallback = "24h",
     .doc = "An open question is dropped after this."},
};
constexpr Section policy{"the policy", policy_keys, {}};

constexpr Key load_keys[]{
    {.name = "concurrency",
     .type = Type::levels,
     .fallback = "auto",
     .doc = "Requests in flight: a number, a list of levels, or auto (1, 2, 4, ... until the plateau).",
     .least = 1,
     .most = 65536},
    {.name = "input_tokens",
     .type = Type::integer,
     .fallback = "1024",
     .doc = "Prompt length.",
     .least = 1,
     .most = 10 * million},
    {.name = "output_tokens",
     .type = Type::integer,
     .fallback = "256",
     .doc = "Tokens to generate.",
     .least = 1,
     .most = million},
    {.name = "requests",
     .type = Type::integer,
     .doc = "Requests of a level; absent: 4 x concurrency, at least 8.",
     .least = 1,
     .most = 10 * million},
    {.name = "duration", .type = Type::duration, .doc = "Time of a level, instead of a number of requests."},
    {.name = "max_concurrency",
     .type = Type::integer,
     .fallback = "256",
     .doc = "Where auto stops at the latest.",
     .least = 1,
     .most = 65536},
};
constexpr Choice load_choices[]{{"requests", "duration", false}};
constexpr Section load{"the load", load_keys, load_choices};

constexpr Key slo_keys[]{
    {.name = "ttft_p99", .type = Type::duration, .doc = "Limit for the 99th percentile of the time to the first token."},
    {.name = "tpot_p95", .type = Type::duration, .doc = "Limit for the 95th percentile of the time per output token."},
};
constexpr Section slo{"the objectives", slo_keys, {}};

constexpr Key at_keys[]{
    {.name = "concurrency",
     .type = Type::levels,
     .required = true,
     .doc = "Where to look: the first level is captured, all of them are measured if only `macro` is possible.",
     .least = 1,
     .most = 65536},
};
constexpr Section at{"the operating point", at_keys, {}};

constexpr Key capture_keys[]{
    {.name = "warmup",
     .type = Type::integer,
     .fallback = "5",
     .doc = "Decode steps before the capture.",
     .least = 0,
     .most = million},
    {.name = "steps",
     .type = Type::integer,
     .fallback = "20",
     .doc = "Decode steps to capture.",
     .least = 1,
     .most = million},
    {.name = "concurrency",
     .type = Type::integer,
     .fallback = "1",
     .doc = "Requests in flight during the capture.",
     .least = 1,
     .most = 65536},
    {.name = "input_tokens",
     .type = Type::integer,
     .fallback = "128",
     .doc = "Prompt length during the capture.",
     .least = 1,
     .most = 10 * million},
    {.name = "output_tokens",
     .type = Type::integer,
     .fallback = "64",
     .doc = "Tokens to generate during the capture.",
     .least = 1,
     .most = million},
    {.name = "stop_limit", .type = Type::duration, .fallback = "60m", .doc = "Stopping a profile may take this long."},
};
constexpr Section capture{"the capture", capture_keys, {}};

constexpr Key artifact_keys[]{
    {.name = "traces",
     .type = Type::word,
     .fallback = "fetch",
     .doc = "Fetch the traces, keep an excerpt, or leave them on the host.",
     .words = trace_words},
};
constexpr Section artifacts{"the artifact rules", artifact_keys, {}};

constexpr Key phase_keys[]{
    {.name = "name", .required = true, .doc = "Name of the phase, used once.", .form = &name},
    {.name = "service", .doc = "A key of `services`; may be left out when there is only one.", .form = &name},
    {.name = "measure",
     .type = Type::word,
     .required = true,
     .doc = "The question: is it warm, how fast is it, where does a decode step go?",
     .words = measure_words},
    {.name = "methods",
     .type = Type::words,
     .doc = "The ladder, best first. Default: torch-profile, nsys, macro for decode-step, else macro.",
     .words = method_words},
    {.name = "load", .type = Type::section, .doc = "The load that is put on the server.", .section = &load},
    {.name = "slo", .type = Type::section, .doc = "Service level objectives to judge the numbers by.", .section = &slo},
    {.name = "at", .type = Type::section, .doc = "The operating point of a decode-step phase.", .section = &at},
    {.name = "capture", .type = Type::section, .doc = "What a profile records.", .section = &capture},
    {.name = "artifacts", .type = Type::section, .doc = "What happens to raw traces.", .section = &artifacts},
    {.name = "time_limit", .type = Type::duration, .fallback = "4h", .doc = "The phase is given up after this."},
};
constexpr Section phase{"a phase", phase_keys, {}};

constexpr Key limit_keys[]{
    {.name = "load", .type = Type::duration, .fallback = "90m", .doc = "A model load is given up after this."},
    {.name = "stall",
     .type = Type::duration,
     .fallback = "15m",
     .doc = "No sign of progress for this long counts as stalled."},
    {.name = "command", .type = Type::duration, .fallback = "60s", .doc = "One remote command."},
};
constexpr Section limits{"the limits", limit_keys, {}};

constexpr Key restore_keys[]{
    {.name = "probe",
     .fallback = "within 25%",
     .doc = "How far the probe after may be from the one before; or off.",
     .form = &probe_form},
    {.name = "time_limit", .type = Type::duration, .fallback = "2h", .doc = "Production must be verified within this."},
};
constexpr Section restore{"the restore rules", restore_keys, {}};

constexpr Key plan_keys[]{
    {.name = "campaign", .required = true, .doc = "Name of the campaign.", .form = &name},
    {.name = "description", .doc = "What it is for, in your own words.", .form = &any_text},
    {.name = "hosts", .type = Type::named, .required = true, .doc = "The machines.", .form = &name, .section = &host},
    {.name = "services",
     .type = Type::named,
     .required = true,
     .doc = "The inference servers.",
     .form = &name,
     .section = &service},
    {.name = "policy", .type = Type::section, .doc = "What may be done to production.", .section = &policy},
    {.name = "phases",
     .type = Type::list,
     .required = true,
     .doc = "The questions, in the order in which they are asked.",
     .section = &phase},
    {.name = "limits", .type = Type::section, .doc = "Time limits.", .section = &limits},
    {.name = "restore", .type = Type::section, .doc = "What is verified when production is restored.", .section = &restore},
};
constexpr Section plan{"the plan", plan_keys, {}};

}   // namespace

const Section& description() {
    return plan;
}

}   // namespace campaign::plans
