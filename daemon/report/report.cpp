#include "daemon/report/report.hpp"

#include "daemon/report/record.hpp"
#include "daemon/report/sections.hpp"

namespace campaign::report {

Result<std::string> markdown(storage::Reader& reader, const storage::Vault& vault, storage::Id campaign) {
    Result<Record> loaded = Record::load(reader, vault, campaign);
    if (!loaded) return loaded.error();
    Record& record = *loaded;
    std::string document = title(record);
    document += answer(record);
    document += production(record);
    document += macro(record);
    document += decode_step(record);
    document += decisions(record);
    document += not_measured(record);
    document += timeline(record);
    document += environment(record);
    document += sources(record);
    return document;
}

}   // namespace campaign::report
