#include "tests/support/alloc_meter.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace minfer::test {
namespace {

thread_local AllocMeter* current = nullptr;

void* allocate(std::size_t n_bytes, std::size_t alignment) noexcept {
  if (current && !current->admit(n_bytes)) return nullptr;
  if (n_bytes == 0) n_bytes = 1;
  if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return std::malloc(n_bytes);
  // aligned_alloc wants whole multiples of the alignment.
  if (n_bytes > SIZE_MAX - alignment) return nullptr;
  return std::aligned_alloc(alignment, (n_bytes + alignment - 1) / alignment * alignment);
}

void* allocate_or_throw(std::size_t n_bytes, std::size_t alignment) {
  if (void* block = allocate(n_bytes, alignment)) return block;
  throw std::bad_alloc();
}

}  // namespace

AllocMeter::AllocMeter(size_t limit) : limit_(limit), outer_(current) {
  current = this;
}
AllocMeter::~AllocMeter() {
  current = outer_;
}

bool AllocMeter::admit(size_t n_bytes) {
  largest_ = std::max(largest_, n_bytes);
  if (n_bytes > limit_) return false;
  total_ += n_bytes;
  return true;
}

}  // namespace minfer::test

using minfer::test::allocate;
using minfer::test::allocate_or_throw;

void* operator new(std::size_t n) {
  return allocate_or_throw(n, 0);
}
void* operator new[](std::size_t n) {
  return allocate_or_throw(n, 0);
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return allocate(n, 0);
}
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
  return allocate(n, 0);
}
void* operator new(std::size_t n, std::align_val_t a) {
  return allocate_or_throw(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a) {
  return allocate_or_throw(n, static_cast<std::size_t>(a));
}
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete[](void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete(void* p, const std::nothrow_t&) noexcept {
  std::free(p);
}
void operator delete[](void* p, const std::nothrow_t&) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(p);
}
