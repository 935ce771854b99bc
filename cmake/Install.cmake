# What `cmake --install` and CPack give: the program, what it ships (campaigns, topologies, rules, schemas), man
# pages and shell completion, and the twin as a library that other CMake projects find with find_package(greynic).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS greynic RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/greynic COMPONENT program)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)

# Man pages and completion are written by the program itself, from the same tables as --help.
get_target_property(commands greynic GREYNIC_COMMANDS)
set(manual ${CMAKE_CURRENT_BINARY_DIR}/manual)
set(pages ${manual}/greynic.1)
set(calls COMMAND greynic help --format man > ${manual}/greynic.1)
foreach(command ${commands})
  list(APPEND pages ${manual}/greynic-${command}.1)
  list(APPEND calls COMMAND greynic help --format man ${command} > ${manual}/greynic-${command}.1)
endforeach()
add_custom_command(OUTPUT ${pages} ${manual}/greynic.bash
  COMMAND ${CMAKE_COMMAND} -E make_directory ${manual} ${calls}
  COMMAND greynic help --format bash > ${manual}/greynic.bash
  DEPENDS greynic COMMENT "Writing man pages and shell completion" VERBATIM)
add_custom_target(manual ALL DEPENDS ${pages})
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES ${manual}/greynic.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME greynic COMPONENT program)

# The rooms behind greynic::twin, as libraries (docs/twin/embedding.md).
foreach(room core statistics files target burst twin)
  set_target_properties(greynic_${room} PROPERTIES EXPORT_NAME ${room})
  install(TARGETS greynic_${room} EXPORT greynic
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/greynic COMPONENT library)
  get_target_property(folder greynic_${room} SOURCE_DIR)
  install(DIRECTORY ${folder}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
endforeach()
# What watched programs link: greynic::zero, a C library, and its headers for C and C++.
set_target_properties(greynic_zero_c PROPERTIES EXPORT_NAME zero)
install(TARGETS greynic_zero_c EXPORT greynic ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(FILES ${PROJECT_SOURCE_DIR}/probes/zero/include/greynic_zero.h
              ${PROJECT_SOURCE_DIR}/probes/zero/include/greynic_zero_format.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(FILES ${PROJECT_SOURCE_DIR}/probes/zero/include/greynic/zero/metrics.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/greynic/zero COMPONENT library)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/probes/zero/examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples/zero
        COMPONENT library)
# What programs link whose connections a broker carries: greynic::broker_client.
if(TARGET greynic_broker_client)
  install(TARGETS greynic_broker_client EXPORT greynic LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
  install(FILES ${PROJECT_SOURCE_DIR}/harness/broker/client/include/greynic_broker.h
                ${PROJECT_SOURCE_DIR}/harness/broker/client/include/greynic_broker.hpp
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
  install(FILES ${PROJECT_SOURCE_DIR}/harness/broker/client/example/echo.c
          DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples/broker COMPONENT library)
endif()
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/greynic)
install(EXPORT greynic NAMESPACE greynic:: FILE greynicTargets.cmake DESTINATION ${package} COMPONENT library)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/greynicConfig.cmake CONTENT [[
include(CMakeFindDependencyMacro)
find_dependency(fmt)
find_dependency(nlohmann_json)
find_dependency(LibLZMA)
find_dependency(ZLIB)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/greynicTargets.cmake)
]] @ONLY)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/greynicConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/greynicConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/greynicConfigVersion.cmake
        DESTINATION ${package} COMPONENT library)

# The Debian packages: `greynic`, and `greynic-dev` with headers and libraries.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "the greynic maintainers <greynic@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Find, explain, model and move the scalability walls of RDMA NICs")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME greynic)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION net)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME greynic-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "libexpected-dev, libfmt-dev, nlohmann-json3-dev, liblzma-dev, zlib1g-dev")
set(CPACK_COMPONENTS_ALL program library)
include(CPack)
