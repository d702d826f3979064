// asx.hpp: owners, callables and exceptions.
#include "check.h"

#include <asx.hpp>
#include <stdexcept>

static void pipeline()
{
    asx::runtime rt;
    asx_region_id root = rt.root();
    asx::channel<int> numbers = rt.make_channel<int>(2, &root);
    auto sum = std::make_shared<int>(0);
    int next = 1;
    asx_task_id producer = rt.spawn(root, [=](asx::context &cx) mutable -> int32_t {
        while (next <= 10) {
            auto reserved = numbers.reserve(cx);
            if (reserved.first == ASX_E_WOULD_BLOCK)
                return ASX_POLL_PENDING;
            asx::check(reserved.first);
            asx::check(reserved.second->send(next++));
        }
        numbers.close_sender();
        return ASX_POLL_READY;
    });
    rt.spawn(root, [=](asx::context &cx) mutable -> int32_t {
        for (int value = 0;;) {
            asx_status status = numbers.recv(cx, value);
            if (status == ASX_E_WOULD_BLOCK)
                return ASX_POLL_PENDING;
            if (status != ASX_OK)
                return ASX_POLL_READY;
            *sum += value;
        }
    });
    EQUAL(sum.use_count(), 2);
    rt.run(0);
    EQUAL(*sum, 55);
    EQUAL(sum.use_count(), 1);
    EQUAL(rt.outcome(producer), ASX_OUTCOME_OK);
    rt.shutdown();
    rt.run(0);
    EQUAL(rt.quiescent(), true);
}

static void exceptions()
{
    asx::runtime rt;
    asx_task_id thrower = rt.spawn(
        rt.root(), [](asx::context &) -> int32_t { throw std::runtime_error("out of luck"); });
    rt.run(0);
    EQUAL(rt.outcome(thrower), ASX_OUTCOME_PANICKED);
    char text[32];
    OK(asx_task_get_text(rt.get(), thrower, ASX_TEXT_OUTCOME, text, sizeof text, nullptr));
    EQUAL(strcmp(text, "out of luck"), 0);

    rt.shutdown();
    rt.run(0);
    auto kept = std::make_shared<int>(0);
    asx_status refused = ASX_OK;
    try {
        rt.spawn(rt.root(), [kept](asx::context &) -> int32_t { return ASX_POLL_READY; });
    } catch (const asx::error &error) {
        refused = error.status();
    }
    EQUAL(refused, ASX_E_REGION_NOT_OPEN);
    EQUAL(kept.use_count(), 1);
}

static void owners()
{
    asx::runtime first(ASX_PROFILE_EMBEDDED);
    asx::runtime rt(std::move(first));
    {
        asx::obligation kept(rt.get(), rt.root()), left(rt.get(), rt.root());
        EQUAL(kept.commit(), ASX_OK);
        EQUAL(kept.commit(), ASX_E_OBLIGATION_ALREADY_RESOLVED);
    }
    rt.shutdown();
    rt.run(0);
    EQUAL(rt.quiescent(), true);
}

// Owns a promise that it never keeps.
struct promising {
    asx::obligation promise;
    int polls;

    explicit promising(asx::obligation &&given) : promise(std::move(given)), polls(0) {}
    int32_t operator()(asx::context &cx)
    {
        if (++polls == 2)
            return ASX_POLL_READY;
        asx::check(cx.wake());
        return ASX_POLL_PENDING;
    }
};

// What a task owns ends with its last poll, and is given up properly.
static void owned_by_a_task()
{
    asx::runtime rt;
    asx_region_info info;
    info.struct_size = static_cast<uint32_t>(sizeof info);
    rt.spawn(rt.root(), promising(asx::obligation(rt.get(), rt.root())));
    OK(asx_region_get_info(rt.get(), rt.root(), &info));
    EQUAL(info.obligations, 1);
    rt.run(0);
    OK(asx_region_get_info(rt.get(), rt.root(), &info));
    EQUAL(info.obligations, 0);
}

static int32_t throws(asx_cx *, void *)
{
    throw 7;
}

// An exception out of a plain callback is forbidden; where it gets through, the runtime can go on.
static void left_by_an_exception()
{
    asx::runtime rt;
    asx_task_id task;
    int caught = 0;
    OK(asx_task_spawn(rt.get(), rt.root(), asx_poll_with(throws, nullptr), nullptr, &task));
    try {
        rt.run(0);
    } catch (int thrown) {
        caught = thrown;
    }
    EQUAL(caught, 7);
    ANSWERS(asx_step(rt.get(), 0, 1, nullptr), ASX_E_REENTRANT);
    OK(asx_runtime_recover(rt.get()));
    rt.run(0);
    EQUAL(rt.outcome(task), ASX_OUTCOME_PANICKED);
}

struct point {
    point(double x, double y) : x(x), y(y) {}
    double x, y;
};

static void in_the_memory_of_a_region()
{
    asx::runtime rt;
    asx_region_id region = rt.open(rt.root());
    point *made = rt.make<point>(region, 3.0, 4.0);
    EQUAL(made->x + made->y, 7);
    EQUAL(reinterpret_cast<uintptr_t>(made) % alignof(point), 0);
    OK(asx_region_end(rt.get(), region));
    asx_status refused = ASX_OK;
    try {
        rt.make<point>(region, 3.0, 4.0);
    } catch (const asx::error &thrown) {
        refused = thrown.status();
    }
    EQUAL(refused, ASX_E_REGION_CLOSED);
}

int main()
{
    pipeline();
    exceptions();
    owners();
    owned_by_a_task();
    left_by_an_exception();
    in_the_memory_of_a_region();
    puts("owners: ok");
    return 0;
}
