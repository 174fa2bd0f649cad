#ifndef KVICK_BASE_HAS_SANITIZER_H_
#define KVICK_BASE_HAS_SANITIZER_H_

// KVICK_HAS_SANITIZER: memory is managed by AddressSanitizer or ThreadSanitizer, which have a
// malloc of their own and take terabytes of address space.
#if defined(__has_feature)  // clang
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KVICK_HAS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KVICK_HAS_SANITIZER
#endif

#endif  // KVICK_BASE_HAS_SANITIZER_H_
