// Templates, lambdas, classes in namespaces, operators, an anonymous namespace.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shop {
struct Item {
    std::string name;
    double price;
    bool operator<(const Item &other) const {
        return price < other.price;
    }
};

template <typename T, int N> class Shelf {
  public:
    void put(T item) {
        items_.push_back(std::move(item));
    }
    template <typename F> auto total(F f) const {
        double sum = 0;
        for (const auto &i : items_)
            sum += f(i) * N;
        return sum;
    }

  private:
    std::vector<T> items_;
};
} // namespace shop

namespace {
std::map<std::string, int> counts;
int count(const std::string &name) {
    return ++counts[name];
}
} // namespace

int main(int argc, char **argv) {
    shop::Shelf<shop::Item, 3> shelf;
    std::function<int(int)> twice = [&](int n) { return count(argv[0]) + 2 * n; };
    for (int i = 0; i < argc + 3; i++)
        shelf.put({std::to_string(twice(i)), i * 1.5});
    return shelf.total([](const shop::Item &i) { return i.price; }) > 100;
}
