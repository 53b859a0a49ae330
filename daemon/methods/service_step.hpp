#pragma once
// What steps on a service have in common.

#include <memory>
#include <string>

#include "adapters/servers/server.hpp"
#include "daemon/engine/perform.hpp"

namespace campaign::methods {

using engine::Campaign;
using engine::Confirmation;
using engine::Effect;
using engine::Outcome;
using engine::Scope;
using engine::ServiceLink;
using engine::Step;
using engine::Track;

/// A step on one service of the plan.
class ServiceStep : public Step {
public:
    ServiceStep(Campaign& campaign, std::string service) : campaign_{campaign}, service_{std::move(service)} {}
    [[nodiscard]] std::string host() const override { return campaign_.plan.services.at(service_).host; }
    [[nodiscard]] json::object input() const override {
        json::object object;
        object["service"] = service_;
        return object;
    }

protected:
    [[nodiscard]] ServiceLink& link() const { return campaign_.link(service_); }
    [[nodiscard]] const std::string& unit() const { return campaign_.link(service_).unit(); }
    [[nodiscard]] std::string on_host() const { return unit() + " on " + host(); }

    Campaign& campaign_;
    std::string service_;
};

/// Where the service's HTTP is reached from here, with its key read now.
Async<Result<servers::Endpoint>> endpoint(ServiceLink& link);

/// A name for something of this step on a host or in a server's log: the same at every try, different for every step.
[[nodiscard]] std::string tag_of(const Campaign& campaign, const std::string& path);

/// Splits "http://127.0.0.1:8000"; the plan's parser has checked the form.
struct Address {
    std::string scheme;
    std::string host;
    int port = 80;
};
[[nodiscard]] Address address_of(const std::string& url);

}   // namespace campaign::methods
