// A look inside an engine: what the residual stream is behind each layer.
#pragma once

#include <cstdint>
#include <span>

namespace minfer {

class LayerProbe {
 public:
  virtual ~LayerProbe() = default;
  // x [n_embd], valid during the call: the stream behind layer `layer` of the batch's row `row`. Called for
  // each row that wants a result, in no particular order of layers and rows; it does not call the engine.
  virtual void residual(int32_t layer, int32_t row, std::span<const float> x) = 0;
};

// What an engine that can be looked into is, beside an Engine.
class LayerProbed {
 public:
  virtual ~LayerProbed() = default;
  // Null: nobody looks, and nothing is spent on it. The probe must outlive its use.
  virtual void set_layer_probe(LayerProbe* probe) = 0;
};

}  // namespace minfer
