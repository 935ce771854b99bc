#include "discovery/places.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

namespace greynic::trace {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNamed[] = {"/run/netns", "/run/docker/netns"};

std::uint32_t inode_of(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 ? static_cast<std::uint32_t>(found.st_ino) : 0;
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string host_name() {
  char name[256] = "host";
  gethostname(name, sizeof name - 1);
  return name;
}

/// Docker keeps the name that people gave beside the id.
std::string docker_name(const std::string& id) {
  const std::string text = text_of_file("/var/lib/docker/containers/" + id + "/config.v2.json");
  std::smatch found;
  const std::regex name(R"re("Name":"/([^"]+)")re");
  return std::regex_search(text, found, name) ? found[1].str() : "";
}

void name_container(Place& place, const std::vector<int>& members) {
  for (const int process : members) {
    ContainerName container =
        container_of(text_of_file("/proc/" + std::to_string(process) + "/cgroup"));
    if (container.names.empty()) continue;
    if (container.runtime == "docker") {
      if (std::string given = docker_name(container.names.back()); !given.empty()) {
        container.names.insert(container.names.begin(), std::move(given));
      }
    }
    if (place.name.empty()) {
      place.name = container.names.front();
      place.runtime = container.runtime;
    }
    for (std::string& name : container.names) place.containers.push_back(std::move(name));
    place.cgroup = std::move(container.cgroup);
    return;
  }
}

}  // namespace

std::map<std::uint32_t, std::vector<int>> processes_by_namespace() {
  std::map<std::uint32_t, std::vector<int>> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); })) {
      continue;
    }
    const std::uint32_t inode = inode_of("/proc/" + name + "/ns/net");
    if (inode != 0) found[inode].push_back(std::stoi(name));
  }
  for (auto& [inode, numbers] : found) std::sort(numbers.begin(), numbers.end());
  return found;
}

ContainerName container_of(std::string_view cgroup_file) {
  struct Form {
    const char* runtime;
    const char* pattern;
  };
  // The paths of both cgroup versions, by systemd's names and by the runtimes' own.
  static const Form kForms[] = {
      {"docker", R"((?:docker-|/docker/)([0-9a-f]{64}))"},
      {"containerd", R"(cri-containerd[-:]([0-9a-f]{64}))"},
      {"cri-o", R"(crio-([0-9a-f]{64}))"},
      {"podman", R"(libpod-([0-9a-f]{64}))"},
      {"containerd", R"(/kubepods[^\n]*/([0-9a-f]{64}))"},
      {"nspawn", R"(systemd-nspawn@([^/\n]+)\.service)"},
      {"nspawn", R"(/machine-([^/\n]+)\.scope)"},
      {"lxc", R"(/lxc(?:\.payload)?[./]([^/\n]+))"},
  };
  const std::string text(cgroup_file);
  for (const Form& form : kForms) {
    std::smatch found;
    if (!std::regex_search(text, found, std::regex(form.pattern))) continue;
    const std::string id = found[1];
    constexpr std::size_t kShortId = 12;  // as the runtimes' own commands print it
    const bool long_id = id.size() == 64;
    std::vector<std::string> names = {long_id ? id.substr(0, kShortId) : id};
    if (long_id) names.push_back(id);
    // The group that is the container: the line's path as far as the part that names it.
    const auto begin = static_cast<std::size_t>(found.position(0));
    const std::size_t line = text.rfind('\n', begin) + 1;  // npos + 1: the first line
    const std::size_t path = text.find(":/", line) + 1;
    const auto behind = begin + static_cast<std::size_t>(found.length(0));
    const std::size_t end = std::min(text.find_first_of("/\n", behind), text.size());
    std::string group = text.substr(path, end - path);
    // Containers of a pod share its network: the group is the pod's.
    if (group.find("kubepods") != std::string::npos) group.resize(group.rfind('/'));
    return {form.runtime, std::move(names), std::move(group)};
  }
  return {};
}

std::vector<Place> find_places() {
  const std::uint32_t own = inode_of("/proc/self/ns/net");
  std::vector<Place> places = {{.inode = own, .runtime = "host", .path = "/proc/self/ns/net"}};
  const auto known = [&](std::uint32_t inode) {
    return std::any_of(places.begin(), places.end(),
                       [&](const Place& place) { return place.inode == inode; });
  };
  for (const char* folder : kNamed) {
    std::error_code ignored;
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const fs::path& path : paths) {
      const std::uint32_t inode = inode_of(path);
      if (inode == 0) continue;
      const std::string name = path.filename();
      if (inode == own && places[0].name.empty() && own != inode_of("/proc/1/ns/net")) {
        places[0].name = name;  // we stand in a namespace that has one
      }
      if (known(inode)) continue;
      const bool plain = folder == kNamed[0];
      places.push_back(
          {.inode = inode, .name = plain ? name : "", .runtime = "netns", .path = path});
    }
  }
  if (places[0].name.empty()) places[0].name = host_name();
  const auto members = processes_by_namespace();
  for (const auto& [inode, numbers] : members) {
    if (!known(inode)) {
      const std::string path = "/proc/" + std::to_string(numbers.front()) + "/ns/net";
      places.push_back({.inode = inode, .runtime = "process", .path = path});
    }
  }
  std::map<std::string, int> taken;
  for (Place& place : places) {
    if (!place.name.empty()) place.containers.push_back(place.name);
    const auto own_members = members.find(place.inode);
    if (place.runtime != "host" && own_members != members.end()) {
      name_container(place, own_members->second);
    }
    if (place.name.empty()) place.name = "netns-" + std::to_string(place.inode);
    if (taken[place.name]++ > 0) place.name += "-" + std::to_string(place.inode);
    if (place.containers.empty()) place.containers.push_back(place.name);
  }
  return places;
}

PlaceWatch::PlaceWatch() : descriptor_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  // /run too: the folders of names come with the first name.
  for (const char* folder : {"/run", kNamed[0], kNamed[1]}) {
    inotify_add_watch(descriptor_, folder, IN_CREATE | IN_DELETE | IN_ATTRIB | IN_ONLYDIR);
  }
}

PlaceWatch::~PlaceWatch() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool PlaceWatch::changed() {
  alignas(inotify_event) char events[4096];
  bool any = false;
  while (read(descriptor_, events, sizeof events) > 0) any = true;
  if (any) {
    for (const char* folder : kNamed) {
      inotify_add_watch(descriptor_, folder, IN_CREATE | IN_DELETE | IN_ATTRIB | IN_ONLYDIR);
    }
  }
  return any;
}

}  // namespace greynic::trace
