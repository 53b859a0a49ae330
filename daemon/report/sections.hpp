#pragma once
// The parts of the document, in its order. Each is Markdown that ends with an empty line; one with nothing to say is "".

#include <string>

#include "daemon/report/record.hpp"

namespace campaign::report {

// What was measured (measured.cpp): numbers are copied from artifacts.
[[nodiscard]] std::string answer(Record& record);   ///< at most three sentences
[[nodiscard]] std::string macro(Record& record);
[[nodiscard]] std::string decode_step(Record& record);
/// One line for each class of failed requests of each load level.
[[nodiscard]] std::vector<std::string> failed_requests(Record& record);

// What happened (told.cpp).
[[nodiscard]] std::string title(const Record& record);
[[nodiscard]] std::string production(Record& record);
[[nodiscard]] std::string decisions(const Record& record);
[[nodiscard]] std::string not_measured(Record& record);
[[nodiscard]] std::string timeline(const Record& record);
[[nodiscard]] std::string environment(Record& record);
[[nodiscard]] std::string sources(const Record& record);   ///< the footnotes of all parts before

}   // namespace campaign::report
