// asx for C++11: owning types for the objects of asx.h. Header-only; everything is inline.
//
// Runtimes, permits and obligations are moved, not copied, and their destructor ends them. Tasks
// are callables `int32_t(asx::context&)` that live until the task has ended: their members are
// destroyed after the last poll. A task that is ended by force or with its runtime has no last
// poll: its permits are aborted, its obligations leak. An exception that escapes a task ends it as
// ASX_POLL_PANICKED, with its message. Constructors throw asx::error.
#ifndef ASX_HPP
#define ASX_HPP

#include "asx.h"

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

namespace asx {

// The exception for a call that failed.
class error : public std::exception {
public:
    explicit error(asx_status status) : status_(status) {}
    asx_status status() const noexcept { return status_; }
    const char *what() const noexcept override { return asx_status_str(status_); }

private:
    asx_status status_;
};

inline void check(asx_status status)
{
    if (status != ASX_OK)
        throw error(status);
}

// The argument of a task's poll.
class context {
public:
    explicit context(asx_cx *cx) : cx_(cx) {}
    asx_cx *raw() const noexcept { return cx_; }
    asx_runtime *rt() const noexcept { return cx_->rt; }
    asx_task_id task() const noexcept { return cx_->task; }
    asx_status checkpoint() { return asx_checkpoint(cx_); }
    bool is_cancelled() { return asx_is_cancelled(cx_); }
    asx_status wake() { return asx_task_wake(cx_->rt, cx_->task); }
    asx_waker waker() const { return asx_cx_waker(cx_); }

private:
    asx_cx *cx_;
};

namespace detail {

template <class F> struct boxed {
    std::unique_ptr<F> callable;

    static int32_t poll(asx_cx *cx, void *ctx)
    {
        boxed *self = static_cast<boxed *>(ctx);
        int32_t answer = call(*self->callable, cx);
        // Destructors may call the runtime here, but not in the drop callback.
        if (answer != ASX_POLL_PENDING)
            self->callable.reset();
        return answer;
    }
    static void drop(void *ctx) { delete static_cast<boxed *>(ctx); }

private:
    static int32_t call(F &callable, asx_cx *raw)
    {
        const char *why = "an exception";
        std::string text;
        try {
            context cx(raw);
            return callable(cx);
        } catch (const std::exception &thrown) {
            try {
                text = thrown.what();
                why = text.c_str();
            } catch (...) {
            }
        } catch (...) {
        }
        asx_task_set_error(raw->rt, raw->task, -1, why);
        return ASX_POLL_PANICKED;
    }
};

// Passes a callable to `offer`, and keeps it if that fails.
template <class F, class Offer> asx_status give(F &&f, Offer offer)
{
    typedef typename std::decay<F>::type Held;
    std::unique_ptr<boxed<Held>> held(new boxed<Held>());
    held->callable.reset(new Held(std::forward<F>(f)));
    asx_body body = { boxed<Held>::poll, held.get(), boxed<Held>::drop };
    asx_status status = offer(body);
    if (status == ASX_OK)
        held.release();
    return status;
}

} // namespace detail

// A reserved slot of a channel of T: sent into once, or aborted.
template <class T> class permit {
public:
    explicit permit(asx_send_permit raw) : raw_(raw), held_(true) {}
    permit(permit &&other) noexcept : raw_(other.raw_), held_(other.held_) { other.held_ = false; }
    permit(const permit &) = delete;
    permit &operator=(const permit &) = delete;
    ~permit()
    {
        if (held_)
            asx_send_permit_abort(&raw_);
    }
    asx_status send(const T &value)
    {
        bool held = held_;
        held_ = false;
        return held ? asx_send_permit_send(&raw_, &value) : ASX_E_OBLIGATION_ALREADY_RESOLVED;
    }

private:
    asx_send_permit raw_;
    bool held_;
};

// Both sides of a channel of T. A plain handle: copies name the same channel.
template <class T> class channel {
    static_assert(std::is_trivially_copyable<T>::value, "elements are copied as bytes");

public:
    channel(asx_channel_sender sender, asx_channel_receiver receiver)
        : sender_(sender), receiver_(receiver)
    {
    }
    asx_channel_id id() const noexcept { return sender_.channel; }
    asx_channel_sender *sender() noexcept { return &sender_; }
    asx_channel_receiver *receiver() noexcept { return &receiver_; }
    asx_status try_send(const T &value) { return asx_channel_try_send(&sender_, &value); }
    asx_status try_recv(T &value) { return asx_channel_try_recv(&receiver_, &value); }
    asx_status recv(context &cx, T &value)
    {
        return asx_channel_recv(&receiver_, cx.raw(), &value);
    }
    // ASX_OK and a permit, or the status of the failure.
    std::pair<asx_status, std::unique_ptr<permit<T>>> reserve(context &cx)
    {
        asx_send_permit raw;
        asx_status status = asx_channel_reserve(&sender_, cx.raw(), &raw);
        std::unique_ptr<permit<T>> held;
        if (status == ASX_OK)
            held.reset(new permit<T>(raw));
        return std::make_pair(status, std::move(held));
    }
    asx_status close_sender() { return asx_channel_sender_close(&sender_); }
    asx_status close_receiver() { return asx_channel_receiver_close(&receiver_); }

private:
    asx_channel_sender sender_;
    asx_channel_receiver receiver_;
};

// An obligation: committed, or aborted by the destructor at the latest.
class obligation {
public:
    obligation(asx_runtime *rt, asx_region_id region) : rt_(rt)
    {
        check(asx_obligation_reserve(rt, region, &raw_));
    }
    obligation(obligation &&other) noexcept : rt_(other.rt_), raw_(other.raw_)
    {
        other.rt_ = nullptr;
    }
    obligation(const obligation &) = delete;
    obligation &operator=(const obligation &) = delete;
    ~obligation()
    {
        if (rt_)
            asx_obligation_abort(rt_, raw_);
    }
    asx_status commit()
    {
        asx_runtime *rt = rt_;
        rt_ = nullptr;
        return rt ? asx_obligation_commit(rt, raw_) : ASX_E_OBLIGATION_ALREADY_RESOLVED;
    }

private:
    asx_runtime *rt_;
    asx_obligation_id raw_;
};

// A runtime, destroyed by the destructor.
class runtime {
public:
    explicit runtime(const asx_runtime_config &config) : rt_(nullptr)
    {
        check(asx_runtime_create(&config, &rt_));
    }
    explicit runtime(int32_t profile = ASX_PROFILE_CORE) : rt_(nullptr)
    {
        asx_runtime_config config;
        check(asx_runtime_config_init(&config, sizeof config, profile));
        check(asx_runtime_create(&config, &rt_));
    }
    runtime(runtime &&other) noexcept : rt_(other.rt_) { other.rt_ = nullptr; }
    runtime(const runtime &) = delete;
    runtime &operator=(const runtime &) = delete;
    ~runtime()
    {
        if (rt_)
            asx_runtime_destroy(rt_);
    }

    asx_runtime *get() const noexcept { return rt_; }
    asx_region_id root() const
    {
        asx_region_id region;
        check(asx_region_root(rt_, &region));
        return region;
    }
    asx_region_id open(asx_region_id parent, const asx_region_options *options = nullptr)
    {
        asx_region_id region;
        check(asx_region_open(rt_, parent, options, &region));
        return region;
    }
    template <class F>
    asx_task_id spawn(asx_region_id region, F &&f, const asx_task_options *options = nullptr)
    {
        asx_task_id task;
        check(detail::give(std::forward<F>(f), [&](asx_body body) {
            return asx_task_spawn(rt_, region, body, options, &task);
        }));
        return task;
    }
    template <class F> void defer(asx_region_id region, F &&f)
    {
        check(detail::give(std::forward<F>(f),
            [&](asx_body body) { return asx_region_defer(rt_, region, body); }));
    }
    // A T in the memory of a region, freed when the region is Closed. No destructor is called.
    template <class T, class... Args> T *make(asx_region_id region, Args &&...args)
    {
        static_assert(std::is_trivially_destructible<T>::value, "nobody calls its destructor");
        void *memory = nullptr;
        check(asx_region_alloc(rt_, region, sizeof(T), alignof(T), &memory));
        return new (memory) T(std::forward<Args>(args)...);
    }
    template <class T>
    channel<T> make_channel(size_t capacity, const asx_region_id *region = nullptr)
    {
        asx_channel_sender sender;
        asx_channel_receiver receiver;
        check(asx_channel_create(rt_, region, capacity, sizeof(T), &sender, &receiver));
        return channel<T>(sender, receiver);
    }
    asx_progress step(asx_time now, uint64_t max_steps)
    {
        asx_progress progress;
        progress.struct_size = static_cast<uint32_t>(sizeof progress);
        check(asx_step(rt_, now, max_steps, &progress));
        return progress;
    }
    void run(asx_time now) { check(asx_run_until_idle(rt_, now, nullptr)); }
    void shutdown(asx_time soft_ns = 0, asx_time force_ns = ASX_NONE)
    {
        check(asx_shutdown(rt_, soft_ns, force_ns));
    }
    bool quiescent() const { return asx_quiescent(rt_, nullptr) == ASX_OK; }
    int32_t outcome(asx_task_id task) const
    {
        int32_t value = -1;
        check(asx_task_outcome(rt_, task, &value));
        return value;
    }
    uint64_t digest() const
    {
        uint64_t value = 0;
        check(asx_journal_digest(rt_, &value));
        return value;
    }

private:
    asx_runtime *rt_;
};

} // namespace asx

#endif
