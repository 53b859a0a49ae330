#pragma once
// What the API says in the moments that an operator looks at.

namespace campaign::ctl::test {

inline constexpr const char* status_three = R"json({
 "schema": "campaignctl.status/1", "version": "0.3.0", "now": "2026-12-01T22:49:31.000Z", "campaigns_total": 3,
 "production": [
  {"service": "kimi", "campaign": "k25", "host": "gpu03", "unit": "vllm-k25.service", "state": "down",
   "detail": "restarted with --profiler-config", "since": "2026-12-01T22:27:00.000Z", "downtime_s": 0, "undos": 3},
  {"service": "glm", "campaign": "glm5", "host": "gpu05", "unit": "vllm-glm5.service", "state": "verified",
   "detail": "= drop-in = argv", "since": "2026-12-01T21:14:00.000Z", "downtime_s": 0, "undos": 0},
  {"service": "kimi", "campaign": "deep-k25", "host": "gpu07", "unit": "vllm-k25.service", "state": "unknown",
   "detail": "no contact for 18 min; the undo stays on record until the host answers", "since": "2026-12-01T22:31:00.000Z",
   "downtime_s": 0, "undos": 3}],
 "campaigns": [
  {"name": "deep-k25", "state": "in_doubt", "over": false, "detail": null, "ended": null, "hosts": ["gpu07"],
   "phase": {"ordinal": 1, "of": 1, "name": "deep", "state": "running", "method": "torch-profile"}, "wait": null,
   "production": [{"state": "unknown"}], "needs": 1},
  {"name": "k25", "state": "running", "over": false, "detail": null, "ended": null, "hosts": ["gpu03"],
   "phase": {"ordinal": 3, "of": 3, "name": "deep", "state": "running", "method": "torch-profile"},
   "wait": {"for": "model ready", "phase": "weights", "percent": 61.2, "elapsed_s": 1320, "expected_s": [2148, 2274],
            "at": "2026-12-01T22:49:30.000Z"}, "production": [{"state": "down"}], "needs": 0},
  {"name": "glm5", "state": "done", "over": true, "detail": "report ready, 214 numbers", "ended": "2026-12-01T21:14:00.000Z",
   "hosts": ["gpu05"], "phase": null, "wait": null, "production": [{"state": "verified"}], "needs": 0}],
 "needs": [{"campaign": "deep-k25", "subject": "deep/torch/3/restart", "what": "was it carried out: restart vllm-k25.service?",
            "command": "campaignctl resume deep-k25 --as done|not-done", "since": "2026-12-01T22:31:00.000Z"}],
 "last_decision": {"campaign": "k25", "label": "D2", "phase": "deep", "at": "2026-12-01T22:26:00.000Z", "chosen": "torch-profile",
   "candidates": [{"method": "torch-profile", "verdict": "chosen"}, {"method": "nsys", "verdict": "impossible"},
                  {"method": "macro", "verdict": "not needed"}],
   "approvals": [{"candidate": "torch-profile", "by": "ana", "at": "2026-12-01T22:25:00.000Z", "expires": null}]}
})json";

inline constexpr const char* campaign_loading = R"json({
 "schema": "campaignctl.campaign/1", "now": "2026-12-01T22:49:31.000Z", "name": "k25", "state": "running", "over": false,
 "detail": null, "submitted": "2026-12-01T20:05:00.000Z", "submitted_by": "ana", "ended": null, "cancel_requested": false,
 "phase": {"ordinal": 3, "of": 3, "name": "deep", "state": "running", "method": "torch-profile"},
 "production": [{"service": "kimi", "host": "gpu03", "unit": "vllm-k25.service", "state": "down",
   "detail": "restarted with --profiler-config", "since": "2026-12-01T22:27:00.000Z", "downtime_s": 0, "undos": 3}],
 "phases": [
  {"name": "macro", "state": "done", "method": "macro", "began": "2026-12-01T20:05:00.000Z", "ended": "2026-12-01T20:58:00.000Z",
   "detail": "plateau 1536 tok/s at 128", "steps": ["s12", "s31"]},
  {"name": "quick", "state": "pivoted", "method": "macro", "began": "2026-12-01T20:58:00.000Z", "ended": "2026-12-01T21:40:00.000Z",
   "detail": "the deeper methods need a restart", "steps": ["s32", "s40"]},
  {"name": "deep", "state": "running", "method": "torch-profile", "began": "2026-12-01T22:26:00.000Z", "ended": null,
   "detail": null, "steps": ["s41", "s43"]}],
 "steps": [
  {"label": "s41", "phase": "deep", "path": "deep/torch-profile/1/drop-in", "state": "done"},
  {"label": "s42", "phase": "deep", "path": "deep/torch-profile/2/restart", "state": "done"},
  {"label": "s43", "phase": "deep", "path": "deep/torch-profile/3/await-ready", "state": "intent"}],
 "wait": {"for": "model ready", "phase": "weights", "percent": 61.2, "shards": [34, 56], "elapsed_s": 1320,
   "expected_s": [2148, 2274], "history": 9, "next_probe": "2026-12-01T22:58:00.000Z", "gives_up": "2026-12-01T23:09:00.000Z",
   "last_log_s": 3, "line": "Loading safetensors checkpoint shards:  61% Completed | 34/56", "at": "2026-12-01T22:49:30.000Z",
   "state": "waiting"},
 "decisions": [{"label": "D2", "phase": "deep", "at": "2026-12-01T22:26:00.000Z", "chosen": "torch-profile", "cannot_show": null,
   "candidates": [
    {"method": "torch-profile", "verdict": "chosen", "why": "the best that is possible and allowed", "downtime_s": [4080, 4620]},
    {"method": "nsys", "verdict": "impossible", "why": "no binary on the host", "evidence": "s08", "downtime_s": [4080, 4620]},
    {"method": "macro", "verdict": "not needed", "why": "torch-profile shows more", "downtime_s": [0, 0]}],
   "approvals": [{"candidate": "torch-profile", "by": "ana", "at": "2026-12-01T22:25:00.000Z", "expires": null}]}],
 "needs": [], "artifacts": 12, "error": null
})json";

inline constexpr const char* campaign_in_doubt = R"json({
 "schema": "campaignctl.campaign/1", "now": "2026-12-01T22:49:31.000Z", "name": "deep-k25", "state": "in_doubt", "over": false,
 "detail": null, "submitted": "2026-12-01T22:05:00.000Z", "ended": null, "cancel_requested": false,
 "phase": {"ordinal": 1, "of": 1, "name": "deep", "state": "running", "method": "torch-profile"},
 "production": [{"service": "kimi", "host": "gpu07", "unit": "vllm-k25.service", "state": "unknown",
   "detail": "no contact for 18 min", "since": "2026-12-01T22:31:09.000Z", "downtime_s": 0, "undos": 3}],
 "phases": [{"name": "deep", "state": "running", "method": "torch-profile", "began": "2026-12-01T22:26:00.000Z", "ended": null,
   "detail": null, "steps": ["s41", "s42"]}],
 "steps": [
  {"label": "s41", "phase": "deep", "path": "deep/torch-profile/1/drop-in", "state": "done"},
  {"label": "s42", "phase": "deep", "path": "deep/torch-profile/2/restart", "title": "restart vllm-k25.service", "host": "gpu07",
   "state": "in_doubt", "began": "2026-12-01T22:31:07.000Z", "ended": "2026-12-01T22:33:00.000Z",
   "evidence": "12 tries, last 22:48, the host does not answer", "error": {"what": "link closed before an answer"}}],
 "wait": null, "decisions": [],
 "needs": [{"campaign": "deep-k25", "subject": "deep/torch-profile/2/restart",
   "what": "was it carried out: restart vllm-k25.service?", "command": "campaignctl resume deep-k25 --as done|not-done"}],
 "artifacts": 2, "error": null
})json";

inline constexpr const char* campaign_failed = R"json({
 "schema": "campaignctl.campaign/1", "now": "2026-12-01T23:31:00.000Z", "name": "k25", "state": "failed", "over": true,
 "detail": "the model could not be loaded with the profiler", "submitted": "2026-12-01T20:05:00.000Z",
 "ended": "2026-12-01T23:25:00.000Z", "cancel_requested": false,
 "phase": {"ordinal": 2, "of": 2, "name": "deep", "state": "failed", "method": "torch-profile"},
 "production": [{"service": "kimi", "host": "gpu03", "unit": "vllm-k25.service", "state": "verified",
   "detail": "= drop-in = argv and environment = active = health = model = one token", "since": "2026-12-01T23:25:00.000Z",
   "downtime_s": 3480, "undos": 0}],
 "phases": [
  {"name": "macro", "state": "done", "method": "macro", "began": "2026-12-01T20:05:00.000Z", "ended": "2026-12-01T20:58:00.000Z",
   "detail": "plateau 1536 tok/s at 128", "steps": ["s12", "s31"]},
  {"name": "deep", "state": "failed", "method": "torch-profile", "began": "2026-12-01T22:26:00.000Z",
   "ended": "2026-12-01T22:49:00.000Z", "detail": "no number is reported", "steps": ["s41", "s43"]}],
 "steps": [
  {"label": "s43", "phase": "deep", "path": "deep/torch-profile/3/await-ready", "state": "failed",
   "began": "2026-12-01T22:27:00.000Z", "ended": "2026-12-01T22:49:00.000Z",
   "error": {"what": "out of memory while loading shard 40 of 56", "evidence": "22:48:55 \"CUDA out of memory\" s43/unit.log:2113"}}],
 "wait": null, "decisions": [], "needs": [], "artifacts": 38, "error": null
})json";

inline constexpr const char* campaign_waiting = R"json({
 "schema": "campaignctl.campaign/1", "now": "2026-12-01T20:59:31.000Z", "name": "k25", "state": "waiting", "over": false,
 "detail": "nothing else is left to do", "submitted": "2026-12-01T20:05:00.000Z", "ended": null, "cancel_requested": false,
 "phase": {"ordinal": 2, "of": 2, "name": "deep", "state": "deferred", "method": "macro"},
 "production": [{"service": "kimi", "host": "gpu03", "unit": "vllm-k25.service", "state": "as_found",
   "detail": "never touched", "since": "2026-12-01T20:05:10.000Z", "downtime_s": 0, "undos": 0}],
 "phases": [{"name": "macro", "state": "done", "method": "macro", "began": "2026-12-01T20:05:00.000Z",
    "ended": "2026-12-01T20:58:00.000Z", "detail": "plateau 1536 tok/s at 128", "steps": ["s12", "s31"]},
   {"name": "deep", "state": "deferred", "method": "macro", "began": "2026-12-01T20:58:00.000Z", "ended": null,
    "detail": "torch-profile and nsys need an approval", "steps": null}],
 "steps": [], "wait": null,
 "decisions": [{"label": "D2", "phase": "deep", "at": "2026-12-01T20:06:00.000Z", "chosen": "macro",
   "cannot_show": "kernel names, SM occupancy", "candidates": [
    {"method": "torch-profile", "verdict": "deferred", "why": "needs approval", "downtime_s": [4080, 4620]},
    {"method": "nsys", "verdict": "deferred", "why": "needs approval", "downtime_s": [4080, 4620]},
    {"method": "macro", "verdict": "chosen", "why": "works without downtime", "downtime_s": [0, 0]}], "approvals": []}],
 "needs": [{"campaign": "k25", "subject": "D2", "what": "approve torch-profile (down 68-77 min), or let it be",
   "command": "campaignctl approve k25 D2 torch-profile"}],
 "artifacts": 12, "error": null
})json";

inline constexpr const char* decision_pivoted = R"json({
 "schema": "campaignctl.decision/1", "campaign": "k25", "label": "D2", "phase": "deep", "at": "2026-12-01T20:06:00.000Z",
 "now": "2026-12-01T20:59:00.000Z", "question": "where does a decode step go", "chosen": "macro", "policy": "no downtime is allowed",
 "state": "final", "cannot_show": "kernel names, SM occupancy, memory bandwidth", "candidates": [
  {"method": "torch-http", "verdict": "impossible", "why": "the server was started without --profiler-config",
   "evidence": "argv s07, routes s08", "shows": "kernels", "downtime_s": [0, 0]},
  {"method": "torch-profile", "verdict": "deferred", "why": "needs approval", "evidence": "", "shows": "kernels by name, per step",
   "downtime_s": [4320, 4320]},
  {"method": "nsys", "verdict": "forbidden", "why": "it would take production down for about 1 h 12 min, the plan allows 0 ms in all",
   "evidence": "", "shows": "", "downtime_s": null},
  {"method": "macro", "verdict": "chosen", "why": "works without downtime", "evidence": "", "shows": "totals", "downtime_s": [0, 0]}],
 "approvals": []
})json";

inline constexpr const char* explained = R"json({
 "schema": "campaignctl.explain/1", "campaign": "k25", "facts_read": true, "allowed_s": 4800, "total_downtime_s": [4080, 4620],
 "phases": [
  {"name": "macro", "method": "macro", "downtime_s": [0, 0], "downtime_source": "", "changes": ["1 transient unit"],
   "if_impossible": "stop", "candidates": [{"method": "macro", "verdict": "chosen", "why": "works without downtime", "downtime_s": [0, 0]}]},
  {"name": "deep", "method": "torch-profile", "downtime_s": [4080, 4620], "downtime_source": "9 loads on record here",
   "changes": ["1 drop-in", "2 restarts"], "if_impossible": "macro",
   "candidates": [{"method": "torch-profile", "verdict": "chosen", "why": "", "downtime_s": [4080, 4620]},
                  {"method": "nsys", "verdict": "impossible", "why": "no binary on the host", "downtime_s": null}]}],
 "asks": ["1 approval (deep)"], "unknown": ["how long one load takes after the driver upgrade"],
 "warnings": ["2 of 5 starts that the unit allows in its interval are used"],
 "commands": [
  {"phase": "deep", "step": "restart", "host": "gpu03", "effect": "transition", "changes_production": true,
   "command": "sudo -n systemctl restart -- vllm-k25.service"},
  {"phase": "macro", "step": "look", "host": "gpu03", "effect": "observe", "changes_production": false,
   "command": "systemctl show --property=ActiveState,SubState,InvocationID,ExecMainStartTimestampMonotonic -- vllm-k25.service"}],
 "drop_ins": [{"host": "gpu03", "path": "/run/systemd/system/vllm-k25.service.d/60-campaignd.conf",
   "content": "[Service]\nExecStart=\nExecStart=/usr/bin/vllm serve\n"}]
})json";

}   // namespace campaign::ctl::test
