#include "core/cancel.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <span>

#include "core/error.h"
#include "core/layer_probe.h"
#include "core/reference/reference_engine.h"
#include "core/stopwatch.h"
#include "tests/support/catch.h"
#include "tests/support/tiny_model.h"

namespace minfer {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGALRM};

// This process with the program's handlers, and with the test program's afterwards.
class WithHandlers {
 public:
  WithHandlers() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &before_[i]);
    install_signal_handlers();
  }
  ~WithHandlers() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  WithHandlers(const WithHandlers&) = delete;
  WithHandlers& operator=(const WithHandlers&) = delete;

 private:
  std::array<struct sigaction, kSignals.size()> before_{};
};

struct End {
  int exit_code = -1;
  double seconds = 0;
  bool restored = false;  // the hook of at_forced_exit() was called
};

int g_restored_fd = -1;

// A child with the handlers that does `act`, and then ends with 7.
End run_child(const std::function<void()>& act) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const Stopwatch clock;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    signal(SIGHUP, SIG_DFL);
    install_signal_handlers();
    g_restored_fd = ends[1];
    at_forced_exit([] { (void)!write(g_restored_fd, "x", 1); });
    act();
    _exit(7);
  }
  close(ends[1]);
  int status = 0;
  waitpid(child, &status, 0);
  End end{.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1, .seconds = clock.seconds()};
  char byte = 0;
  end.restored = read(ends[0], &byte, 1) == 1;
  close(ends[0]);
  return end;
}

void wait_for(double seconds) {
  for (const Stopwatch clock; clock.seconds() < seconds;) usleep(1000);
}

}  // namespace

TEST_CASE("cancel: the first signal asks, and its deadline ends what does not look", "[cancel]") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const End asked = run_child([&] {
      if (interrupted()) _exit(1);
      raise(number);
      if (!interrupted()) _exit(1);
    });
    CHECK(asked.exit_code == 7);
    CHECK_FALSE(asked.restored);
    const End stuck = run_child([&] {
      raise(number);
      wait_for(30);
    });
    CHECK(stuck.exit_code == 130);
    CHECK(stuck.restored);
    CHECK(stuck.seconds >= kGraceSeconds);
    CHECK(stuck.seconds < kGraceSeconds + 2);
  }
}

TEST_CASE("cancel: the second signal ends the process at once", "[cancel]") {
  const End end = run_child([] {
    raise(SIGTERM);
    raise(SIGINT);
  });
  CHECK(end.exit_code == 130);
  CHECK(end.restored);
  CHECK(end.seconds < kGraceSeconds);
}

TEST_CASE("cancel: a hook that does not return holds nobody up", "[cancel]") {
  const End end = run_child([] {
    at_forced_exit([] {
      for (;;) pause();
    });
    raise(SIGTERM);
    raise(SIGTERM);
  });
  CHECK(end.exit_code == 130);
  CHECK(end.seconds < kGraceSeconds);
}

TEST_CASE("cancel: in an AnswerScope SIGINT ends an answer, and no more", "[cancel]") {
  const End cleared = run_child([] {
    AnswerScope scope;
    for (int answer = 0; answer < 3; ++answer) {
      raise(SIGINT);
      if (!interrupted()) _exit(1);
      scope.clear();
      if (interrupted()) _exit(2);
    }
    raise(SIGINT);
    wait_for(kGraceSeconds + 0.3);  // no deadline runs
  });
  CHECK(cleared.exit_code == 7);
  const End twice = run_child([] {
    AnswerScope scope;
    raise(SIGINT);
    raise(SIGINT);
  });
  CHECK(twice.exit_code == 130);
  CHECK(twice.restored);
  const End terminated = run_child([] {
    AnswerScope scope;
    raise(SIGINT);
    raise(SIGTERM);
    scope.clear();
    if (!interrupted()) _exit(1);
    wait_for(30);
  });
  CHECK(terminated.exit_code == 130);
  const End afterwards = run_child([] {
    { AnswerScope scope; }
    raise(SIGINT);
    wait_for(30);
  });
  CHECK(afterwards.exit_code == 130);
}

TEST_CASE("cancel: what was ignored for good reason stays so", "[cancel]") {
  const End end = run_child([] {
    signal(SIGHUP, SIG_IGN);  // nohup
    install_signal_handlers();
    raise(SIGHUP);
    if (interrupted()) _exit(1);
  });
  CHECK(end.exit_code == 7);
}

TEST_CASE("cancel: the reference engine stops within a layer, and no sequence has changed",
          "[cancel][reference]") {
  struct Interrupt final : LayerProbe {
    void residual(int32_t layer, int32_t, std::span<const float>) override {
      if (layer == at_layer) raise(SIGINT);
    }
    int32_t at_layer = -1;
  };
  const auto bytes = test::tiny_model();
  const auto file = gguf::Reader::from_bytes(bytes, "m.gguf");
  const WithHandlers handlers;
  for (const int32_t n_threads : {1, 3}) {
    const auto engine = make_reference_engine(file, {.n_threads = n_threads, .n_vocab_used = 0});
    const SeqId seq = engine->kv_reserve(16);
    Batch first, second;
    for (int32_t pos = 0; pos < 4; ++pos) first.add(seq, pos, 'a' + pos, Want::kArgmax);
    for (int32_t pos = 4; pos < 8; ++pos) second.add(seq, pos, 'a' + pos, Want::kArgmax);
    engine->forward(first);
    const TokenId expected = engine->forward(second).back().argmax;
    engine->kv_truncate(seq, 4);

    Interrupt probe;
    dynamic_cast<LayerProbed&>(*engine).set_layer_probe(&probe);
    AnswerScope scope;
    for (probe.at_layer = 0; probe.at_layer < engine->hparams().n_layer; ++probe.at_layer) {
      try {
        // Of several rows that want something each would ask, and a second SIGINT means the process.
        for (size_t t = 0; t + 1 < second.rows.size(); ++t) second.rows[t].want = Want::kNothing;
        engine->forward(second);
        FAIL("not interrupted");
      } catch (const Error& error) {
        CHECK(error.code() == ExitCode::kInterrupted);
      }
      CHECK(engine->kv_length(seq) == 4);
      scope.clear();
    }
    probe.at_layer = -1;
    CHECK(engine->forward(second).back().argmax == expected);
    CHECK(engine->kv_length(seq) == 8);
  }
}

}  // namespace minfer
