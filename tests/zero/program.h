#pragma once

/// A program with pipes to its stdin and stdout, ended with the object.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

namespace greynic::zero {

class Program {
 public:
  explicit Program(std::vector<std::string> words) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(to[0], 0);
      dup2(from[1], 1);
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    to_ = to[1];
    from_ = fdopen(from[0], "r");
  }
  ~Program() {
    end();
    close(to_);
    fclose(from_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  /// The next line, without its end; empty at the end.
  std::string line() {
    char text[512];
    if (fgets(text, sizeof text, from_) == nullptr) return {};
    std::string got(text);
    if (!got.empty() && got.back() == '\n') got.pop_back();
    return got;
  }
  void go_on() {
    if (write(to_, "\n", 1) != 1) std::abort();
  }
  /// SIGKILL; false when it had gone before.
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  int to_ = -1;
  FILE* from_ = nullptr;
};

}  // namespace greynic::zero
