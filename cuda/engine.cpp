#include "cuda/engine.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include "core/batch_check.h"
#include "core/cancel.h"
#include "core/error.h"
#include "core/layer_probe.h"
#include "core/tensor_map.h"
#include "cuda/decode_graph.h"
#include "cuda/host_logits.h"
#include "cuda/kernels/flash_decode.h"
#include "cuda/memory_plan.h"
#include "cuda/pipeline.h"
#include "cuda/runtime/ceil_div.h"
#include "cuda/runtime/device_info.h"
#include "cuda/weights.h"

namespace minfer::cu {
namespace {

int32_t choose_vocab(int32_t n_used, const HParams& h, const gguf::Reader& file) {
  if (n_used < 0 || n_used > h.n_vocab) {
    throw Error(ExitCode::kModelFile, fmt::format("{}: the tokenizer has {} tokens, but the head has {} rows",
                                                  gguf::printable(file.name()), n_used, h.n_vocab));
  }
  return n_used ? n_used : h.n_vocab;
}

MemoryPlan plan_on_this_device(const HParams& h, const ModelTensors& tensors, const CudaOptions& options) {
  reset_peak_device_memory();
  flash_prefill_tile_rows(h.head_dim);  // refuses a head_dim that has no kernel
  size_t free_bytes = 0, total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "device memory");
  const MemoryPlan plan = plan_memory(h, tensors, options, free_bytes);
  spdlog::info("device memory: {}; {:.2f} GB free", plan.describe(), static_cast<double>(free_bytes) / 1e9);
  if (plan.n_kv_tokens < options.n_kv_tokens) {
    spdlog::info("KV cache: room for {} tokens of the {} that could be used", plan.n_kv_tokens,
                 options.n_kv_tokens);
  }
  if (options.f16_cache == F16Cache::kAuto && !plan.use_f16_cache) {
    spdlog::warn(
        "--f16-cache auto: off, since f16 weights do not fit; prefill decodes each matrix as it goes and is "
        "slower");
  }
  return plan;
}

class CudaEngine final : public Engine, public LayerProbed, public Profiled {
 public:
  CudaEngine(const gguf::Reader& file, const CudaOptions& options)
      : h_(HParams::read(file)),
        n_vocab_used_(choose_vocab(options.n_vocab_used, h_, file)),
        tensors_(ModelTensors::read(file, h_)),
        plan_(plan_on_this_device(h_, tensors_, options)),
        weights_(h_, tensors_, plan_, options.progress),
        kv_(h_, plan_.n_kv_tokens),
        w_(h_, kMaxRows, weights_.scratch_elements()),
        pipeline_(h_, n_vocab_used_, weights_.model(), kv_, w_),
        host_ints_(4 * kMaxRows),
        host_tiles_(kMaxRows),
        host_choices_(kMaxRows),
        host_bad_layer_(kMaxRows),
        host_logits_(h_.n_vocab),
        graph_(pipeline_, w_, {host_choices_.data(), host_bad_layer_.data()}) {
    spdlog::info("device memory: at most {:.2f} GB taken, {:.2f} GB announced",
                 static_cast<double>(peak_device_memory()) / 1e9, static_cast<double>(plan_.peak()) / 1e9);
  }

  const HParams& hparams() const override { return h_; }
  std::string description() const override;
  void set_layer_probe(LayerProbe* probe) override { probe_ = probe; }
  void set_profiler(Profiler* profiler) override { pipeline_.set_profiler(profiler); }
  uint64_t kv_bytes(int32_t n_tokens) const override { return KvCache::bytes(h_, n_tokens); }
  bool kv_fits(int32_t n_tokens) const override { return kv_.fits(n_tokens); }
  int32_t max_batch_rows() const override { return kMaxRows; }
  SeqId kv_reserve(int32_t n_tokens) override { return kv_.reserve(n_tokens); }
  int32_t kv_length(SeqId seq) const override { return kv_.extent(seq).length; }
  void kv_copy(SeqId src, SeqId dst, int32_t n) override {
    forget(dst);
    kv_.copy(src, dst, n, stream_.get());
  }
  void kv_truncate(SeqId seq, int32_t n) override {
    if (n < kv_.extent(seq).length) forget(seq);
    kv_.truncate(seq, n);
  }
  void kv_free(SeqId seq) override {
    forget(seq);
    kv_.free(seq);
  }
  std::span<const RowResult> forward(const Batch& batch) override;

 private:
  void forget(SeqId seq) {
    last_argmax_.erase(seq);
    on_device_.clear();
  }
  std::optional<SequenceState> state(SeqId seq) const;
  bool is_next_step(std::span<const Row> rows) const;
  void decode(std::span<const Row> rows);
  void run(std::span<const Row> rows, size_t first_row);
  void show_layer(int layer, std::span<const Row> rows, size_t first_row) const;
  void upload(std::span<const Row> rows);
  void upload_wanted(std::span<const size_t> wanted);
  int upload_tiles(std::span<const Row> rows, size_t first);
  RowGroup group_of(std::span<const Row> rows);
  int launched_splits(std::span<const Row> alone) const;
  void download(size_t n_rows, size_t first, size_t n);
  void fetch_logits(std::span<const Row> rows, std::span<const size_t> wanted);
  void judge(std::span<const Row> rows, size_t n_rows);
  void collect(std::span<const Row> rows, size_t first_row, std::span<const size_t> wanted);

  HParams h_;
  int32_t n_vocab_used_;
  ModelTensors tensors_;
  MemoryPlan plan_;
  Stream stream_;
  Weights weights_;
  KvCache kv_;
  Workspace w_;
  Pipeline pipeline_;

  PinnedBuffer<int32_t> host_ints_;  // ids, pos, first_slot, wanted
  PinnedBuffer<FlashTile> host_tiles_;
  PinnedBuffer<Choice> host_choices_;
  PinnedBuffer<int32_t> host_bad_layer_;
  HostLogits host_logits_;
  DecodeGraph graph_;
  std::map<SeqId, int32_t> bad_layer_;  // of this batch: the first bad layer of a sequence's rows so far
  size_t n_judged_ = 0;                 // rows of the group under way that are in it
  std::vector<RowResult> results_;
  std::vector<std::span<const float>> logits_;  // of the head's rows under way
  std::map<SeqId, TokenId> last_argmax_;
  LayerProbe* probe_ = nullptr;
  std::vector<Row>
      on_device_;  // the rows that w_.ids, w_.pos and w_.first_slot stand for now; empty: unknown
};

std::string CudaEngine::description() const {
  const Devices devices = list_devices();
  return fmt::format("cuda, {}, f16 cache {}", devices.found.empty() ? "device" : devices.found.front().name,
                     plan_.use_f16_cache ? "on" : "off");
}

std::optional<SequenceState> CudaEngine::state(SeqId seq) const {
  if (!kv_.has(seq)) return std::nullopt;
  const KvCache::Extent& extent = kv_.extent(seq);
  SequenceState state{.length = extent.length, .room = extent.n_slots, .last_argmax = {}};
  if (const auto last = last_argmax_.find(seq); last != last_argmax_.end()) state.last_argmax = last->second;
  return state;
}

// Rows of different sequences, few enough for the head to take together, all wanted: the step that a graph
// holds.
bool is_decode_step(std::span<const Row> rows) {
  if (rows.empty() || rows.size() > kMaxHeadRows) return false;
  for (size_t t = 0; t < rows.size(); ++t) {
    if (rows[t].want == Want::kNothing || (t > 0 && rows[t].seq == rows[t - 1].seq)) return false;
  }
  return true;
}

// The first rows that have no neighbour of their own sequence.
size_t count_alone(std::span<const Row> rows) {
  size_t n = 0;
  while (n < rows.size() && (n + 1 == rows.size() || rows[n + 1].seq != rows[n].seq)) ++n;
  return n;
}

std::span<const RowResult> CudaEngine::forward(const Batch& batch) {
  const std::vector<Row> rows = checked_rows(batch, h_.n_vocab, [this](SeqId seq) { return state(seq); });
  results_.clear();
  host_logits_.begin_pass();
  bad_layer_.clear();
  if (is_decode_step(rows) && probe_ == nullptr) {
    decode(rows);
  } else {
    for (size_t first = 0; first < rows.size(); first += kMaxRows) {
      throw_if_interrupted();  // the groups before this one are in their sequences
      run(std::span(rows).subspan(first, std::min<size_t>(kMaxRows, rows.size() - first)), first);
    }
  }
  return results_;
}

bool CudaEngine::is_next_step(std::span<const Row> rows) const {
  return std::equal(
      rows.begin(), rows.end(), on_device_.begin(), on_device_.end(),
      [](const Row& a, const Row& b) { return a.seq == b.seq && a.pos == b.pos && a.token == b.token; });
}

void CudaEngine::decode(std::span<const Row> rows) {
  const bool is_there = is_next_step(rows);
  on_device_.clear();  // whatever fails from here on
  n_judged_ = 0;
  std::vector<size_t> wanted(rows.size());
  std::iota(wanted.begin(), wanted.end(), size_t{0});
  if (!is_there) {
    upload(rows);
    upload_wanted(wanted);
  }
  graph_.step(group_of(rows), stream_.get());
  fetch_logits(rows, wanted);
  stream_.synchronize("decode");
  collect(rows, 0, wanted);
  for (size_t t = 0; t < rows.size(); ++t) {
    kv_.set_length(rows[t].seq, rows[t].pos + 1);
    on_device_.push_back(
        {.token = results_[t].argmax, .pos = rows[t].pos + 1, .seq = rows[t].seq, .want = Want::kArgmax});
  }
}

void CudaEngine::run(std::span<const Row> rows, size_t first_row) {
  on_device_.clear();
  n_judged_ = 0;
  upload(rows);
  const std::function<void(int)> show = [&](int layer) { show_layer(layer, rows, first_row); };
  pipeline_.layers(group_of(rows), stream_.get(), probe_ ? show : nullptr);
  std::vector<size_t> wanted;
  for (size_t t = 0; t < rows.size(); ++t) {
    if (rows[t].want != Want::kNothing) wanted.push_back(t);
  }
  upload_wanted(wanted);
  // Equal parts, so that many rows do not leave a few to another regime.
  const int n_wanted = static_cast<int>(wanted.size()),
            n_parts = std::max(1, ceil_div(n_wanted, kMaxHeadRows));
  const auto n_in_part = static_cast<size_t>(ceil_div(n_wanted, n_parts));
  for (size_t first = 0; first < wanted.size(); first += n_in_part) {
    const auto part = std::span(wanted).subspan(first, std::min(n_in_part, wanted.size() - first));
    pipeline_.head(static_cast<int>(first), static_cast<int>(part.size()), stream_.get());
    fetch_logits(rows, part);
    download(rows.size(), first, part.size());
    collect(rows, first_row, part);
  }
  if (n_judged_ < rows.size()) {  // for the groups that follow
    download(rows.size(), 0, 0);
    judge(rows, rows.size());
  }
  for (const Row& row : rows) kv_.set_length(row.seq, row.pos + 1);
}

// How the rows attend; uploads the tiles of those that do so together.
RowGroup CudaEngine::group_of(std::span<const Row> rows) {
  RowGroup group{.n_rows = static_cast<int>(rows.size()), .n_alone = static_cast<int>(rows.size())};
  if (rows.size() <= kGemvMaxRows) return group;
  const size_t n_alone = count_alone(rows);
  group.n_alone = static_cast<int>(n_alone);
  group.n_splits = launched_splits(rows.first(n_alone));
  if (n_alone < rows.size()) group.n_tiles = upload_tiles(rows, n_alone);
  return group;
}

// Enough for the longest row, up to a power of two, so that a captured step serves for a while.
int CudaEngine::launched_splits(std::span<const Row> alone) const {
  int n = 1;
  for (const Row& row : alone) n = std::max(n, flash_decode_splits(row.pos + 1, h_.n_head, h_.n_head_kv));
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(n)));
}

void CudaEngine::show_layer(int layer, std::span<const Row> rows, size_t first_row) const {
  const auto n = static_cast<size_t>(h_.n_embd);
  std::vector<float> x(rows.size() * n);
  check(
      cudaMemcpyAsync(x.data(), w_.x.data(), x.size() * sizeof(float), cudaMemcpyDeviceToHost, stream_.get()),
      "download");
  stream_.synchronize("layer probe");
  for (size_t t = 0; t < rows.size(); ++t) {
    if (rows[t].want == Want::kNothing) continue;
    probe_->residual(layer, static_cast<int32_t>(first_row + t), std::span(x).subspan(t * n, n));
  }
}

void CudaEngine::upload(std::span<const Row> rows) {
  int32_t* ids = &host_ints_[0];
  int32_t* pos = &host_ints_[kMaxRows];
  int32_t* first_slot = &host_ints_[2 * kMaxRows];
  for (size_t t = 0; t < rows.size(); ++t) {
    ids[t] = rows[t].token;
    pos[t] = rows[t].pos;
    first_slot[t] = kv_.extent(rows[t].seq).first_slot;
  }
  const auto copy = [&](DeviceBuffer<int32_t>& to, const int32_t* from) {
    check(cudaMemcpyAsync(to.data(), from, sizeof(int32_t) * rows.size(), cudaMemcpyHostToDevice,
                          stream_.get()),
          "upload");
  };
  copy(w_.ids, ids);
  copy(w_.pos, pos);
  copy(w_.first_slot, first_slot);
}

void CudaEngine::upload_wanted(std::span<const size_t> wanted) {
  int32_t* rows = &host_ints_[3 * kMaxRows];
  std::copy(wanted.begin(), wanted.end(), rows);
  check(cudaMemcpyAsync(w_.wanted.data(), rows, sizeof(int32_t) * wanted.size(), cudaMemcpyHostToDevice,
                        stream_.get()),
        "upload");
}

// The tiles of the rows from `first` on; how many.
int CudaEngine::upload_tiles(std::span<const Row> rows, size_t first) {
  std::vector<FlashSegment> segments;
  for (size_t t = first; t < rows.size(); ++t) {
    if (t == first || rows[t].seq != rows[t - 1].seq) {
      segments.push_back({.first_row = static_cast<int>(t),
                          .n_rows = 0,
                          .first_pos = rows[t].pos,
                          .first_slot = kv_.extent(rows[t].seq).first_slot});
    }
    segments.back().n_rows += 1;
  }
  const std::vector<FlashTile> tiles = flash_prefill_tiles(segments, h_.head_dim);
  std::copy(tiles.begin(), tiles.end(), host_tiles_.data());
  check(cudaMemcpyAsync(w_.tiles.data(), host_tiles_.data(), sizeof(FlashTile) * tiles.size(),
                        cudaMemcpyHostToDevice, stream_.get()),
        "upload");
  return static_cast<int>(tiles.size());
}

// Queues the copies of the logits that these rows want; row wanted[i] is row i of the head.
void CudaEngine::fetch_logits(std::span<const Row> rows, std::span<const size_t> wanted) {
  std::vector<bool> wants_logits(wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) wants_logits[i] = rows[wanted[i]].want == Want::kLogits;
  logits_ = host_logits_.fetch(w_.logits.data(), wants_logits, stream_.get());
}

// The first bad layers of a group's rows, and the choices [first, first + n), once they are there.
void CudaEngine::download(size_t n_rows, size_t first, size_t n) {
  const cudaStream_t s = stream_.get();
  check(cudaMemcpyAsync(host_choices_.data(), w_.choices.data() + first, sizeof(Choice) * n,
                        cudaMemcpyDeviceToHost, s),
        "download");
  check(cudaMemcpyAsync(host_bad_layer_.data(), w_.bad_layer.data(), sizeof(int32_t) * n_rows,
                        cudaMemcpyDeviceToHost, s),
        "download");
  stream_.synchronize("forward");
}

// Takes note of the group's first n_rows rows. A bad row's K and V spoil the rows behind it from the next
// layer on, so what went wrong first in a sequence is the least of their layers; behind the last layer nobody
// is spoilt.
void CudaEngine::judge(std::span<const Row> rows, size_t n_rows) {
  for (; n_judged_ < n_rows; ++n_judged_) {
    const int32_t layer = host_bad_layer_[n_judged_];
    if (layer < 0 || layer == h_.n_layer - 1) continue;
    const auto at = bad_layer_.emplace(rows[n_judged_].seq, layer).first;
    at->second = std::min(at->second, layer);
  }
}

// Makes results of the choices and logits of the wanted rows, which are in host memory.
void CudaEngine::collect(std::span<const Row> rows, size_t first_row, std::span<const size_t> wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    const size_t t = wanted[i];
    judge(rows, t + 1);
    int32_t bad_layer = host_bad_layer_[t];
    if (const auto first = bad_layer_.find(rows[t].seq); bad_layer >= 0 && first != bad_layer_.end()) {
      bad_layer = std::min(bad_layer, first->second);
    }
    const Choice& choice = host_choices_[i];
    const RowResult result{.row = static_cast<int32_t>(first_row + t),
                           .argmax = std::max(choice.id, 0),
                           .max_logit = choice.max_logit,
                           .margin = choice.margin,
                           .bad_layer = bad_layer >= 0 || choice.finite ? bad_layer : h_.n_layer,
                           .logits = logits_[i]};
    last_argmax_[rows[t].seq] = result.argmax;
    results_.push_back(result);
  }
}

}  // namespace

std::unique_ptr<Engine> make_cuda_engine(const gguf::Reader& file, const CudaOptions& options) {
  return std::make_unique<CudaEngine>(file, options);
}

}  // namespace minfer::cu
