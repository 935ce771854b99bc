#include <memory>

#include "command.h"
#include "greynic/files/output_file.h"
#include "greynic/rules/made_filters.h"

namespace greynic::cli {
namespace {

struct GenerateFlags {
  rules::MadeFilters wanted;
  std::string out;
};

int run(const GenerateFlags& flags) {
  const auto text = rules::made_filters(flags.wanted);
  if (!text) return tell(text.error());
  if (flags.out.empty()) {
    put_data(*text);
    return 0;
  }
  if (const auto written = files::write_text(flags.out, *text); !written) {
    return tell(written.error());
  }
  return 0;
}

}  // namespace

void add_generate(Program& program) {
  auto flags = std::make_shared<GenerateFlags>();
  Command command = program.command(
      "generate", "Filter sets made from a seed, in ClassBench's format",
      "  greynic generate acl --filters 1000 --seed 7 -o acl.rules\n"
      "  greynic optimize made:acl:1000:7               # the same, without a file");
  command
      .option("FAMILY", flags->wanted.family,
              "acl (hosts and services), fw (wild addresses, wide port ranges) or ipc (between)")
      .required();
  command.option("--filters", flags->wanted.count, "How many lines; one with ranges is many rules");
  command.option("--seed", flags->wanted.seed, "The same seed gives the same filters");
  command.option("-o,--out", flags->out, "Write them here instead of to stdout").writes();
  command.run([flags] { return run(*flags); });
}

}  // namespace greynic::cli
