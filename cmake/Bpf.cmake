# greynic_bpf(OUT function NAME.bpf.c...): compiles programs for the kernel's BPF machine with clang and embeds the
# objects ("NAME.bpf.o") into OUT behind `function` (see greynic_embed). They include "kernel_types.h" of
# probes/bpf/kernel, and the headers beside them. Debug information stays: it carries the types that CO-RE adapts to
# the kernel that runs.
function(greynic_bpf out function)
  set(objects "")
  foreach(source ${ARGN})
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(GET source STEM LAST_ONLY name)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${GREYNIC_CLANG} -target bpf -mcpu=v3 -g -O2 -Wall -Wextra -Werror -Wno-unused-parameter
              -I ${PROJECT_SOURCE_DIR}/probes/bpf/kernel
              -idirafter /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}
              -MD -MF ${object}.d -c ${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d
      COMMENT "Compiling ${name} for the kernel" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  greynic_embed(${out} ${function} ${objects})
endfunction()
