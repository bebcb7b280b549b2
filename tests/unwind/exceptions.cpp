// Stacks of C++ programs: inside destructors while an exception passes, in handlers, in virtual calls and lambdas.
#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "oracle.h"

namespace {

volatile int sink;

struct Checker {
    const char *where;
    ~Checker() { oracle_check(where); }
};

__attribute__((noinline)) void thrower(int depth) {
    Checker passing{"destructor"};
    if (depth == 0)
        throw std::runtime_error("thrown");
    thrower(depth - 1);
    sink = depth;
}

__attribute__((noinline)) void rethrower() {
    try {
        thrower(3);
    } catch (const std::exception &) {
        oracle_check("handler");
        throw;
    }
}

struct Shape {
    virtual ~Shape() = default;
    virtual int area(int n) = 0;
};

struct Square : Shape {
    int area(int n) override {
        oracle_check("virtual");
        return n * n;
    }
};

__attribute__((noinline)) void in_lambdas() {
    std::vector<int> v{5, 3, 9, 1, 7};
    bool once = false;
    std::sort(v.begin(), v.end(), [&](int a, int b) {
        if (!once)
            oracle_check("lambda");
        once = true;
        return a < b;
    });
    std::function<int(int)> f = [&](int n) -> int {
        return n == 0 ? static_cast<int>(oracle_check("function")) : f(n - 1);
    };
    sink = f(10);
}

} // namespace

int main() {
    for (int i = 0; i < 3; i++) {
        try {
            rethrower();
        } catch (const std::runtime_error &) {
            oracle_check("outer handler");
        }
    }
    std::unique_ptr<Shape> s = std::make_unique<Square>();
    sink = s->area(3);
    in_lambdas();
    std::thread t([] {
        try {
            rethrower();
        } catch (...) {
            oracle_check("thread");
        }
    });
    t.join();
    return oracle_result(26);
}
