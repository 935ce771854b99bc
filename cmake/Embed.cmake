# Writes OUT: a C++ source that holds FILES as byte arrays behind FUNCTION (see greynic_embed).
string(REGEX MATCH "^(.*)::([^:]+)$" _ "${FUNCTION}")
set(namespace ${CMAKE_MATCH_1})
set(name ${CMAKE_MATCH_2})
set(arrays "")
set(rows "")
set(index 0)
foreach(file ${FILES})
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  get_filename_component(base ${file} NAME)
  string(APPEND arrays "constexpr unsigned char kFile${index}[] = {${bytes}0};\n")
  string(APPEND rows "    {\"${base}\", {reinterpret_cast<const char*>(kFile${index}), sizeof kFile${index} - 1}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUT}.new
"#include \"greynic/core/embedded.h\"

namespace ${namespace} {
namespace {
${arrays}
const greynic::EmbeddedFile kFiles[] = {
${rows}    {\"\", {}}};
}  // namespace

std::span<const greynic::EmbeddedFile> ${name}();
std::span<const greynic::EmbeddedFile> ${name}() { return {kFiles, ${index}}; }

}  // namespace ${namespace}
")
file(RENAME ${OUT}.new ${OUT})
